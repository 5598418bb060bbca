package cri

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds an error's text: a container's own words can be part of it.
const maxText = 2048

var (
	wrapper  = regexp.MustCompile(`rpc error: code = \w+ desc = `)
	query    = regexp.MustCompile(`(https?://[^\s"'?]+)\?[^\s"']*`)
	userinfo = regexp.MustCompile(`(https?://)[^\s/"'@]+@`)
	quotedID = regexp.MustCompile(`(?: for)? "[0-9a-f]{64}"`)
	longID   = regexp.MustCompile(`(\w+:)?[0-9a-f]{64}`)
)

// wrappers stand in front of what went wrong and tell a user nothing. They come
// in this order, the outer ones first.
var wrappers = []string{
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

// readable is text without gRPC's wrapper, task layers, secrets in URLs, full
// ids and control characters.
func readable(text string) string {
	text = wrapper.ReplaceAllString(text, "")
	for _, w := range wrappers {
		text = strings.TrimPrefix(text, w)
	}
	text = strings.TrimSuffix(text, ": unknown")
	text = query.ReplaceAllString(text, "$1")
	text = userinfo.ReplaceAllString(text, "$1")
	text = quotedID.ReplaceAllString(text, "")
	text = longID.ReplaceAllStringFunc(text, shorten)
	return printable(text)
}

// shorten cuts a container's id to the 12 digits that people use and leaves
// digests, which name their algorithm.
func shorten(id string) string {
	if strings.Contains(id, ":") {
		return id
	}
	return id[:12]
}

// printable is text in one line of at most maxText bytes.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if text = strings.TrimSpace(text); len(text) <= maxText {
		return text
	}
	cut := maxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// disconnected says in plain words why a connection could not be made or broke.
// gRPC hides that at the end of a chain, part of it quoted.
func disconnected(text string) string {
	if _, quoted, ok := strings.Cut(text, `connection error: desc = "`); ok {
		if inner, err := strconv.Unquote(`"` + beforeQuote(quoted) + `"`); err == nil {
			text = inner
		}
	}
	for _, c := range connectionTexts {
		if strings.Contains(text, c.has) {
			return c.say
		}
	}
	return text
}

// beforeQuote is s up to its first quote that is not escaped.
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

var connectionTexts = []struct{ has, say string }{
	{"no such file or directory", "no container runtime there (no such socket); start it, or name another with --container-runtime-endpoint"},
	{"connection refused", "no container runtime answers there (connection refused); start it"},
	{"permission denied", "permission denied; run podd as root"},
	{"not initialized yet", "the container runtime is still starting"},
	{"EOF", "the container runtime closed the connection"},
	{"connection reset", "the container runtime closed the connection"},
	{"broken pipe", "the container runtime closed the connection"},
	{"draining", "the container runtime is shutting down"},
	{"client connection is closing", "podd is closing its connection"},
}
