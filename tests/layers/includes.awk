# SPDX-License-Identifier: MIT
# Reads `ninja -t deps` (what the compiler really opened for each object, the source first) and prints each file
# of the tree that a layer may not see. Variables: root, build: the two directories, with a slash at the end.

# A path below the source root, or "" for a file of the system's or of the build's.
function in_tree(path)
{
    if (path !~ /^\//)
        path = build path
    while (sub(/\/[^\/]+\/\.\.\//, "/", path))
        ;
    if (index(path, build) == 1 || index(path, root) != 1)
        return ""
    return substr(path, length(root) + 1)
}

function layer(source)
{
    if (source ~ /^core\/[a-z]+\//) {
        sub(/^core\//, "", source)
        sub(/\/.*/, "", source)
        return "core " source
    }
    if (source ~ /^plugins\//) {
        sub(/^plugins\//, "", source)
        sub(/\/.*/, "", source)
        return "plugin " source
    }
    # "tools hw", "tools bench/rival"
    if (source ~ /^tools\//) {
        sub(/^tools\//, "", source)
        sub(/\/[^\/]*$/, "", source)
        return "tools " source
    }
    sub(/\/.*/, "", source)
    return source
}

function may_see(source, header, own)
{
    own = layer(source)
    # They stand alone, and are compiled into whatever needs them.
    if (header ~ /^core\/base\/(whole|write_size)\.h$/ && own ~ /^(plugin .*|tools (hw|command))$/)
        return 1
    if (own == "tools hw" && header ~ /^(core\/object\/(header|manifest)|probe\/(digest|object\/[a-z]+))\.h$/)
        return 1
    if (own == "tests")
        return 1
    if (own ~ /^plugin /) {
        sub(/^plugin /, "", own)
        return header ~ /^include\/hw\/(plugin|ops|types)\.h$/ || header ~ /^kernels\// ||
               index(header, "plugins/common/") == 1 || index(header, "plugins/" own "/") == 1
    }
    if (own == "examples")
        return header ~ /^(examples|include\/hw)\// || header ~ /^plugins\/common\/(rows|slots)\.h$/
    if (own == "kernels")
        return header ~ /^kernels\//
    # base and object stand alone; core/*.h is shared by all rooms. A call sees nothing of the way of a plugin file.
    if (own == "core base")
        return header ~ /^(core\/base|include\/hw)\//
    if (own == "core object")
        return header ~ /^(core\/object|core\/base|include\/hw)\//
    if (own ~ /^core (call|route|memory)$/)
        return header ~ /^(core\/(call|route|memory|base)|include\/hw)\// || header ~ /^core\/[a-z]+\.h$/
    if (own ~ /^core (settings|load|cache|open)$/)
        return header ~ /^(core|include\/hw)\//
    if (own == "verify")
        return header ~ /^(verify|include\/hw)\// || header == "core/judge.h"
    if (own == "proxy")
        return header ~ /^include\/hw\/(plugin|ops|types)\.h$/ || index(header, "proxy/") == 1 ||
               header ~ /^core\/(proxy|base\/(likely|platform|process))\.h$/
    # What distrusts a plugin's file.
    if (own == "probe")
        return header ~ /^(probe|core|include\/hw)\// || header == "plugins/common/sha256.h"
    if (own == "tools helper")
        return header ~ /^(tools\/helper|probe|core|include\/hw)\//
    if (own == "tools probe")
        return header ~ /^(tools\/helper|tools\/probe|probe|core|verify|include\/hw)\//
    if (own == "tools worker")
        return header ~ /^(tools\/helper|tools\/worker|probe|proxy\/worker|core|include\/hw)\//
    # util stands alone; the model library needs nothing of the commands, and commands nothing of each other.
    if (own == "tools util")
        return header ~ /^tools\/util\//
    if (own == "tools model/gguf")
        return header ~ /^(tools\/(model\/gguf|util)|include\/hw)\//
    if (own == "tools model/tokenizer")
        return header ~ /^(tools\/(model\/(gguf|tokenizer)|util)|include\/hw)\//
    if (own == "tools model/llama")
        return header ~ /^(tools\/(model\/(gguf|llama)|util)|include\/hw)\//
    if (own == "tools command")
        return header ~ /^(tools\/(command|util)|include\/hw)\//
    if (own == "tools model")
        return header ~ /^(tools\/(model|command|util)|include\/hw)\//
    if (own == "tools hw")
        return header ~ /^(tools\/(hw|command|util)|verify|include\/hw)\//
    if (own == "tools bench")
        return header ~ /^(tools\/(command|util)|verify|include\/hw)\// || header ~ /^tools\/bench\/[a-z]+\.h$/
    if (own == "tools bench/rival")
        return header ~ /^(tools\/(bench\/rival|command|util)|include\/hw)\// ||
               header ~ /^tools\/bench\/(bench|products)\.h$/
    return 0
}

/^[^ ]/ { stale = /\(STALE\)/; source = "" }
!stale && /^    / {
    path = in_tree(substr($0, 5))
    if (source == "")
        source = path
    else if (path != "" && !may_see(source, path))
        print source " includes " path
}
