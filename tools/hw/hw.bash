# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Bash completion of hw: commands and options as its help has them, some of their values, settings, devices and files.

_hw_commands()
{
    hw --help | sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p' | grep -vx hw
}

_hw_devices()
{
    hw devices -l 2>/dev/null | cut -d ' ' -f 1
}

_hw_backends()
{
    hw explain --json 2>/dev/null | sed -nE '/"candidates": /,/^  \],?$/s/^      "name": "(.+)",$/\1/p' | sort -u
}

_hw_types='f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_K q5_K q6_K Q4_K_S Q4_K_M Q5_K_S Q5_K_M'

# Values of the option $1, if it has known ones; $2 is what has been typed of them.
_hw_values()
{
    local types='f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0' type
    case $1 in
    -d | --device) _hw_devices ;;
    --precision) echo fp32 fp16 int8 ;;
    --shape) echo tiny tinyllama llama-2-7b mistral-7b llama-3-8b ;;
    --type) echo $_hw_types ;;
    --kv-type) for type in $types; do echo "${2%"${2##*,}"}$type"; done ;;
    esac
}

_hw_words()
{
    local command=$1 number=$2 # of the word that is typed
    case $command in
    '') _hw_commands && echo help ;;
    help) _hw_commands ;;
    quantize) echo $_hw_types ;;
    cache) [ "$number" -eq 2 ] && echo show clear || _hw_backends ;;
    plugin) [ "$number" -ne 2 ] || echo show check lock ;;
    bench) echo speed open dispatch copy overhead peaks threads ops products ;;
    env) hw env --csv | sed -nE '2,$s/^([a-z_]+),([A-Z_]+),.*/\1 \2/p' ;;
    explain) _hw_backends ;;
    devices | verify) _hw_devices ;;
    esac
}

_hw()
{
    local current=${COMP_WORDS[COMP_CWORD]} command='' suffix='' words
    [ "$COMP_CWORD" -le 1 ] || command=${COMP_WORDS[1]}
    words=$(_hw_values "${COMP_WORDS[COMP_CWORD - 1]}" "$current")
    if [ -n "$words" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi
    case $current in
    -*) words=$(hw ${command:+"$command"} --help | grep -oE -- '--[a-z][a-z-]*' | sort -u) ;;
    *) words=$(_hw_words "$command" "$COMP_CWORD") ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    case $command in
    run | inspect | quantize) suffix=gguf ;;
    devices | verify | explain) suffix=so ;;
    esac
    if [ -n "$suffix" ] && [[ $current != -* ]]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
            compgen -f -X "!*.$suffix" -- "$current"
            compgen -d -S / -- "$current"
        )
    fi
}

complete -F _hw hw
