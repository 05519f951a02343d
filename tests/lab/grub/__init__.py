"""The real GRUB on a disk of a few files, under QEMU: which kernel it boots, and with which words."""
