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

// maxSetting is how many bytes a file of headers, certificates or an id may
// have.
const maxSetting = 1 << 20

// readSmall reads a file of settings, which root named; links are followed.
func readSmall(path string) ([]byte, os.FileInfo, error) {
	p := place{path: filepath.Dir(path), trusted: true}
	f, info, err := p.open(filepath.Base(path), true)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSetting+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxSetting {
		return nil, nil, fmt.Errorf("it has more than %d MiB", maxSetting>>20)
	}
	return data, info, nil
}

// parseHeaders reads "Name: value" lines; blank ones and those that begin with
// # say nothing. Errors tell the line and never what is in it.
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
		if !ok || !isToken(name) || !isValue(value) {
			return nil, fmt.Errorf("line %d is not \"Name: value\"", n)
		}
		h.Add(name, value)
	}
	return h, nil
}

// checkHeader says whether every name and value can be sent.
func checkHeader(h http.Header) error {
	for name, values := range h {
		if !isToken(name) {
			return errors.New("a header's name has characters that a name cannot have")
		}
		for _, v := range values {
			if !isValue(v) {
				return fmt.Errorf("the value of %s has control characters", name)
			}
		}
	}
	return nil
}

// isToken says that s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	const marks = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Trim(s, marks) == ""
}

// isValue says that s has no control character but the tab.
func isValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
