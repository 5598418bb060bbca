package cri

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"podd/manifest/lazyregexp"
)

// maxErrorBytes limits the length of an error text in bytes, because an error can contain a
// container's output.
const maxErrorBytes = 2048

var (
	grpcPrefixPattern = lazyregexp.New(`rpc error: code = \w+ desc = `)
	urlQueryPattern   = lazyregexp.New(`(https?://[^\s"'?]+)\?[^\s"']*`)
	userinfoPattern   = lazyregexp.New(`(https?://)[^\s/"'@]+@`)
	quotedIDPattern   = lazyregexp.New(`(?: for)? "[0-9a-f]{64}"`)
	// damagedIDPattern matches the ID of a damaged image in an error of CRI-O. The ID is kept, because the
	// error of a list names the image in no other way.
	damagedIDPattern = lazyregexp.New(`(image with ID )"([0-9a-f]{64})"`)
	longIDPattern    = lazyregexp.New(`(\w+:)?[0-9a-f]{64}`)
	// logLinePattern matches a log line of runc in an error of CRI-O.
	logLinePattern = lazyregexp.New(`time="[^"]*" level=\w+ msg=("(?:[^"\\]|\\.)*")`)
	// execOutputPattern matches the text that CRI-O appends to the reason why a command did not
	// start.
	execOutputPattern = lazyregexp.New(`(?s), stdout: .*, stderr: .*, exit code -1$`)
	// storageLocationPattern matches the storage location that CRI-O prepends to an image name.
	storageLocationPattern = lazyregexp.New(`\[\w+@/[^\]]*\]`)
)

// causePrefixes contains prefixes of error causes that do not help a user. In an error, they occur
// in the order of this list.
var causePrefixes = []string{
	"command error: ",
	"failed to create containerd task: ",
	"failed to start containerd task: ",
	"failed to create shim task: ",
	"failed to create shim: ",
	"OCI runtime create failed: ",
	"container create failed: ",
	"runc create failed: ",
	"unable to start container process: ",
	"error during container init: ",
}

// makeReadable returns text without the gRPC prefix, the prefixes in causePrefixes, secrets in
// URLs, full IDs and control characters. The first digits of most IDs are kept.
func makeReadable(text string) string {
	text = grpcPrefixPattern().ReplaceAllString(text, "")
	text = execOutputPattern().ReplaceAllString(text, "")
	text = logLinePattern().ReplaceAllStringFunc(text, messageOfLogLine)
	text = storageLocationPattern().ReplaceAllString(text, "")
	for _, w := range causePrefixes {
		text = strings.TrimPrefix(text, w)
	}
	text = strings.TrimSuffix(text, ": unknown")
	text = urlQueryPattern().ReplaceAllString(text, "$1")
	text = userinfoPattern().ReplaceAllString(text, "$1")
	text = damagedIDPattern().ReplaceAllString(text, "$1$2")
	text = quotedIDPattern().ReplaceAllString(text, "")
	text = longIDPattern().ReplaceAllStringFunc(text, shortenID)
	return makePrintable(text)
}

// messageOfLogLine returns the message of a log line that matches logLinePattern.
func messageOfLogLine(line string) string {
	quoted := logLinePattern().FindStringSubmatch(line)[1]
	if text, err := strconv.Unquote(quoted); err == nil {
		return text
	}
	return quoted
}

// shortenID returns the first 12 digits of a container ID. It does not change digests, which contain
// the name of their algorithm.
func shortenID(id string) string {
	if strings.Contains(id, ":") {
		return id
	}
	return id[:12]
}

// makePrintable returns text as one line of at most maxErrorBytes bytes.
func makePrintable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if text = strings.TrimSpace(text); len(text) <= maxErrorBytes {
		return text
	}
	cut := maxErrorBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// connectionCause returns the cause of a connection error. gRPC puts the cause at the end
// of a chain of messages, partly quoted.
func connectionCause(text string) string {
	if _, quoted, ok := strings.Cut(text, `connection error: desc = "`); ok {
		if inner, err := strconv.Unquote(`"` + beforeQuote(quoted) + `"`); err == nil {
			text = inner
		}
	}
	for _, c := range connectionTexts {
		if strings.Contains(text, c.phrase) {
			return c.cause
		}
	}
	return text
}

// beforeQuote returns the part of s before the first double quote that is not escaped with a
// backslash.
func beforeQuote(s string) string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i]
		}
	}
	return s
}

// connectionTexts contains the causes of connection errors with their remedies. A phrase is a part
// of gRPC's error text.
var connectionTexts = []struct{ phrase, cause string }{
	{"no such file or directory", "the socket does not exist; start the container runtime, or set --container-runtime-endpoint to another socket (see \"podd check\")"},
	{"connection refused", "connection refused; start the container runtime (see \"podd check\")"},
	{"permission denied", "permission denied; run podd as root"},
	{"not initialized yet", "the container runtime is still starting"},
	{"use of closed network connection", "the container runtime accepts connections, but sends no response"}, // gRPC has closed the connection after MinConnectTimeout
	{"EOF", "the container runtime closed the connection"},
	{"connection reset", "the container runtime closed the connection"},
	{"broken pipe", "the container runtime closed the connection"},
	{"draining", "the container runtime is shutting down"},
	{"client connection is closing", "podd is closing its connection"},
}
