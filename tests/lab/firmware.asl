// The power and thermal half of the lab's firmware. QEMU's own tables describe the CPUs, but give them no
// P-states, no C-states and no thermal zone; this table adds them, so the guest runs the kernel's real
// acpi-cpufreq, acpi_idle and thermal drivers instead of a fixture of them.
//
// What stands between `each CPU` and `end` is written for CPU 0; firmware.py repeats it for every CPU of the machine.
DefinitionBlock ("", "SSDT", 2, "TUNLAB", "CPUPM", 0x00000001)
{
    // each CPU
    External (\_SB.CPUS.C000, DeviceObj)
    // end

    // Index of the fastest P-state the firmware allows now: 0 when cool, 2 when hot.
    Name (\PPCV, 0)

    // Control and status are I/O ports that nothing in the machine decodes, two bytes wide. The status reads as
    // all ones, which matches no state: the kernel reports the frequency it asked for last.
    Name (\PCTX, Package ()
    {
        ResourceTemplate () { Register (SystemIO, 16, 0, 0x05A0, 1) },
        ResourceTemplate () { Register (SystemIO, 16, 0, 0x05A4, 1) }
    })

    // MHz, mW, transition us, bus master us, control, status
    Name (\PSSX, Package ()
    {
        Package () { 3500, 95000, 10, 10, 0x23, 0x23 },
        Package () { 2400, 65000, 10, 10, 0x18, 0x18 },
        Package () { 1200, 35000, 10, 10, 0x0C, 0x0C }
    })

    // All three are of type C1, entered by HLT: the only kind that does halt under emulation. Their exit
    // latencies (us) differ, and these are what a latency limit selects by.
    Name (\CSTX, Package ()
    {
        3,
        Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0, 0) }, 1, 2, 1000 },
        Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0, 0) }, 1, 10, 500 },
        Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0, 0) }, 1, 133, 100 }
    })

    // each CPU
    Scope (\_SB.CPUS.C000)
    {
        Method (_PCT) { Return (\PCTX) }
        Method (_PSS) { Return (\PSSX) }
        Method (_PPC) { Return (\PPCV) }
        Method (_CST) { Return (\CSTX) }
    }
    // end

    // The thermometer: a spare byte of the DMA page registers, which a root user of the guest can write through
    // /dev/port. Zero, its value at power-on, stands for a comfortable 45 degrees.
    OperationRegion (\HEAT, SystemIO, 0x87, 1)
    Field (\HEAT, ByteAcc, NoLock, Preserve) { DEGC, 8 }

    Scope (\_TZ)
    {
        ThermalZone (TZ00)
        {
            // The kernel polls the zone (_TZP), and each reading also plays the firmware's thermal governor.
            Method (_TMP, 0, Serialized)
            {
                Local0 = \DEGC
                If (Local0 == 0) { Local0 = 45 }
                Local1 = 0
                If (Local0 >= 90) { Local1 = 2 }
                If (Local1 != \PPCV)
                {
                    \PPCV = Local1
                    // each CPU
                    Notify (\_SB.CPUS.C000, 0x80)
                    // end
                }
                Return (2732 + Local0 * 10)
            }
            Method (_CRT) { Return (4032) }     // 130 degrees, in tenths of a kelvin
            Name (_TZP, 10)                     // tenths of a second
        }
    }
}
