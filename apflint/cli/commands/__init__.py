"""The commands of apflint. The name of a module is the name of the command that it defines."""
