# All that GRUB needs of a Linux kernel: it writes the command line that it was given to the serial port, and ends QEMU.
# Source: Documentation/arch/x86/boot.rst (the header's fields, "32-bit boot protocol").

        .code32
        .org 0x1f1
        .byte 1                 # setup_sects: one behind this
        .org 0x1fe
        .word 0xaa55            # boot_flag
        .byte 0xeb, 0x6a        # jump: where the header ends
        .ascii "HdrS"
        .word 0x0206            # version
        .org 0x211
        .byte 1                 # loadflags: LOADED_HIGH
        .org 0x214
        .long 0x100000          # code32_start
        .org 0x22c
        .long 0x37ffffff        # initrd_addr_max
        .long 0x100000          # kernel_alignment
        .org 0x238
        .long 2047              # cmdline_size

# The text at %esi, up to its NUL.
        .macro write
1:      lodsb
        testb %al, %al
        jz 3f
        movb %al, %ah
        movw $0x3fd, %dx
2:      inb %dx, %al
        testb $0x20, %al        # room for another byte
        jz 2b
        movb %ah, %al
        movw $0x3f8, %dx
        outb %al, %dx
        jmp 1b
3:
        .endm

        .org 0x400              # loaded at code32_start; %esi: boot_params
begin:  cld
        movl 0x228(%esi), %ebx  # cmd_line_ptr
        movl $(0x100000 + before - begin), %esi
        write
        movl %ebx, %esi
        write
        movl $(0x100000 + behind - begin), %esi
        write
        movw $0x3fd, %dx
4:      inb %dx, %al
        testb $0x40, %al        # all bytes are out
        jz 4b
        movw $0xf4, %dx         # isa-debug-exit
        xorl %eax, %eax
        outl %eax, %dx
5:      hlt
        jmp 5b

before: .asciz "\n@@booted<"
behind: .asciz ">booted@@\n"
        .org 0x800
