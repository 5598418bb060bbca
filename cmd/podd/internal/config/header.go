package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// Header is a set of HTTP headers whose values are secret: it prints, logs and
// marshals with names only.
type Header map[string][]string

// String lists the names, sorted, without values.
func (h Header) String() string {
	return "[" + strings.Join(slices.Sorted(maps.Keys(h)), " ") + "]"
}

// GoString is String, for %#v.
func (h Header) GoString() string { return h.String() }

// LogValue is String, for slog.
func (h Header) LogValue() slog.Value { return slog.StringValue(h.String()) }

// MarshalJSON writes the names.
func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.Sorted(maps.Keys(h)))
}

// parseHeader reads "Name:value[,Name:value]", the form of the kubelet's
// --manifest-url-header. A piece without a colon belongs to the value before
// it, so "Accept: a, b" works too. Errors never show a value.
func parseHeader(h Header, text string) error {
	name := ""
	for _, piece := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(piece, ":")
		switch {
		case ok:
			name = strings.TrimSpace(key)
			h[name] = append(h[name], strings.TrimSpace(value))
		case strings.TrimSpace(piece) == "":
		case name == "":
			return fmt.Errorf(`no header name before the first ":"; write it as "Name:value"`)
		default:
			last := len(h[name]) - 1
			h[name][last] += "," + piece
		}
	}
	return nil
}

// checkHeader says what is wrong with a header, or "".
func checkHeader(name string, values []string) string {
	if name == "" || strings.IndexFunc(name, notToken) >= 0 {
		return fmt.Sprintf("%q is no header name", name)
	}
	for _, v := range values {
		if strings.IndexFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
			return fmt.Sprintf("the value of %s has a control character", name)
		}
	}
	return ""
}

// notToken reports what may not stand in a header name (RFC 9110 5.6.2).
func notToken(r rune) bool {
	switch {
	case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
