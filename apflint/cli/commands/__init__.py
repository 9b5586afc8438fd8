"""The commands of apflint: a module of this package is the command of its name."""
