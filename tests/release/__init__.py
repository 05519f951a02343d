"""What a release holds, and whether each artefact of it installs and runs its probe."""
