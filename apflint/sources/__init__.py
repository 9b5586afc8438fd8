"""Where objects come from: reads what words name. The one way in is `inputs.read_inputs`; other modules are its sources."""
