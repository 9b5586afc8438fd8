"""Tests of apflint.client_diagnosis."""
