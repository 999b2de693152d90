# Flattens one JSON document on standard input into lines "path<TAB>value", so that a shell can
# ask for a member by its path without an interpreter to install:
#   {"id":"7","amount":{"value":"1.00"},"facts":[{"kind":"x"}]}
# gives  id 7,  amount.value 1.00,  facts.0.kind x.  Escapes stay as they are, but for \" \\ and \/.
# Exits 1 where the input isn't JSON.

{ text = text (NR > 1 ? " " : "") $0 }

END {
    at = 1
    value("")
    blank()
    if (at <= length(text)) broken()
}

function broken() { failed = 1; exit 1 }

function blank() { while (index(" \t\r\n", substr(text, at, 1)) && at <= length(text)) at++ }

function value(path,    first) {
    blank()
    first = substr(text, at, 1)
    if (first == "{") object(path)
    else if (first == "[") array(path)
    else if (first == "\"") print path "\t" string()
    else scalar(path)
}

function scalar(path,    rest) {
    rest = substr(text, at, 64)
    if (!match(rest, /^(true|false|null|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?)/)) broken()
    print path "\t" substr(rest, 1, RLENGTH)
    at += RLENGTH
}

function string(    out, run, char) {
    at++
    out = ""
    for (;;) {
        if (at > length(text)) broken()
        run = substr(text, at, 512)
        if (match(run, /^[^"\\]+/)) {
            out = out substr(run, 1, RLENGTH)
            at += RLENGTH
            continue
        }
        char = substr(text, at, 1)
        at++
        if (char == "\"") return out
        char = substr(text, at, 1)
        at++
        if (char == "\"" || char == "\\" || char == "/") out = out char
        else out = out "\\" char
    }
}

function object(path,    name) {
    at++
    blank()
    if (substr(text, at, 1) == "}") { at++; return }
    for (;;) {
        blank()
        if (substr(text, at, 1) != "\"") broken()
        name = string()
        blank()
        if (substr(text, at, 1) != ":") broken()
        at++
        value(path == "" ? name : path "." name)
        if (!more("}")) return
    }
}

function array(path,    count) {
    at++
    blank()
    if (substr(text, at, 1) == "]") { at++; return }
    for (count = 0; ; count++) {
        value(path == "" ? count "" : path "." count)
        if (!more("]")) return
    }
}

# Past a comma: 1. Past the closing bracket: 0.
function more(closing,    char) {
    blank()
    char = substr(text, at, 1)
    at++
    if (char == ",") return 1
    if (char == closing) return 0
    broken()
}
