package source

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// maxSettingsSize is the maximum size in bytes of a file with headers, certificates or a machine
// ID.
const maxSettingsSize = 1 << 20

// readSettingsFile reads a file that a flag or the configuration names. It follows links to any
// file, because only root can set flags.
func readSettingsFile(path string) ([]byte, os.FileInfo, error) {
	dir := manifestDir{path: filepath.Dir(path), isTrusted: true}
	f, info, err := dir.open(filepath.Base(path), true)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettingsSize+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxSettingsSize {
		return nil, nil, fmt.Errorf("the file is larger than %d MiB", maxSettingsSize>>20)
	}
	return data, info, nil
}

// parseHeaders parses lines of the form "Name: value" and ignores blank lines and lines
// that begin with #. Errors contain the line number and never the text.
func parseHeaders(data []byte) (http.Header, error) {
	h := http.Header{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !isToken(name) || !isHeaderValue(value) {
			return nil, fmt.Errorf("line %d is not \"Name: value\"", n)
		}
		h.Add(name, value)
	}
	return h, nil
}

// checkHeader returns an error if a name or value cannot be sent.
func checkHeader(h http.Header) error {
	for name, values := range h {
		if !isToken(name) {
			return errors.New("a header name contains invalid characters")
		}
		for _, v := range values {
			if !isHeaderValue(v) {
				return fmt.Errorf("the value of header %s contains control characters", name)
			}
		}
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	const tokenChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Trim(s, tokenChars) == ""
}

// isHeaderValue reports whether s has no control character except tab.
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
