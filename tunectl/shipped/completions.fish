# Completion of tunectl for fish. The program itself knows what may follow; see "tunectl --help".

function __tunectl_complete
    set -l line (commandline -cp | string collect)
    set -l token (commandline -ct)
    set -l before (string match -r -- '^--[^=]*=' "$token")
    set -l rest (string replace -r -- '^--[^=]*=' '' "$token")
    env _TUNECTL_COMPLETE=fish_complete "_TUNECTL_LINE=$line" PROGRAM </dev/null 2>/dev/null | while read -l -d \t kind value said
        switch "$kind"
            case plain
                printf '%s\t%s\n' "$value" "$said"
            case dir
                for each in (__fish_complete_directories "$rest" '')
                    printf '%s%s\n' "$before" "$each"
                end
            case file
                for each in (__fish_complete_path "$rest" '')
                    printf '%s%s\n' "$before" "$each"
                end
        end
    end
end

complete --command tunectl --no-files --keep-order --arguments '(__tunectl_complete)'
