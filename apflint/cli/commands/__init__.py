"""The commands of apflint. Each module defines the command of the same name."""
