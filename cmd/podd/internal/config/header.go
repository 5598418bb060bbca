package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// Header contains the values of HTTP headers by name. The values may be secret, so a Header is
// printed, logged and marshaled without values.
type Header map[string][]string

// String returns the sorted names of the headers without values.
func (h Header) String() string {
	return "[" + strings.Join(slices.Sorted(maps.Keys(h)), " ") + "]"
}

// GoString returns String(), because the verb %#v would otherwise print the values.
func (h Header) GoString() string { return h.String() }

// LogValue returns String(), because slog would otherwise log the values.
func (h Header) LogValue() slog.Value { return slog.StringValue(h.String()) }

// MarshalJSON returns the sorted names of the headers as a JSON array.
func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.Sorted(maps.Keys(h)))
}

// parseHeader parses "Name:value[,Name:value]", the format of the kubelet's
// --manifest-url-header, and adds the headers to h. A part without a colon belongs to the
// preceding value, so that "Accept: a, b" is valid. Errors do not contain values, because
// values may be secret.
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
			lastIndex := len(h[name]) - 1
			h[name][lastIndex] += "," + piece
		}
	}
	return nil
}

// checkHeader returns the reason for which a header is invalid, or "" if the header is valid.
func checkHeader(name string, values []string) (reason string) {
	if name == "" || strings.IndexFunc(name, isInvalidInNames) >= 0 {
		return fmt.Sprintf("%q is not a header name", name)
	}
	for _, v := range values {
		if strings.IndexFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
			return fmt.Sprintf("the value of %s contains a control character", name)
		}
	}
	return ""
}

// isInvalidInNames reports whether r must not be in the name of a header (RFC 9110 section
// 5.6.2).
func isInvalidInNames(r rune) bool {
	switch {
	case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
