package nodelog

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"podd/server"
)

// Limits on the values of a query. All except maxPatternBytes are limits of the kubelet.
const (
	maxServices         = 4
	maxServiceNameBytes = 256
	maxTailLines        = 100_000
	maxPatternBytes     = 4096
)

// A query requests the logs of services, or one file. Exactly one of Services and File is set.
type query struct {
	// Services are the names of services, as validServiceName allows them.
	Services []string
	// File is the name of a file or directory below the directory of logs, as fs.ValidPath allows
	// it.
	File    string
	Options options
}

// options select entries of the logs of services.
type options struct {
	// Since and Until are the times of the first and the last entry; zero means no limit.
	Since, Until time.Time
	// Tail is the maximum number of entries, the newest ones; nil means all.
	Tail *int
	// Boot selects a boot of the host by its offset: 0 is the current boot, and -1 is the boot
	// before it. nil means all boots.
	Boot *int
	// Pattern is a regular expression. It selects the messages that match; "" selects all messages.
	Pattern string
}

// isSet reports whether an option differs from its zero value.
func (o options) isSet() bool { return o != options{} }

// parseQuery parses the parameters of a node log query (KEP-2258) from the URL of a request for
// /logs/. It returns nil if the URL contains none of these parameters. Errors are *server.Error. As
// in the kubelet, the status is 400 if a value cannot be parsed, and 406 if a value is not allowed.
func parseQuery(values url.Values) (*query, error) {
	o, err := parseOptions(values)
	if err != nil {
		return nil, err
	}
	var files []string
	q := &query{Options: o}
	for _, name := range values["query"] {
		switch {
		case strings.ContainsAny(name, `/\`):
			files = append(files, name)
		case strings.TrimSpace(name) != "":
			q.Services = append(q.Services, name)
		}
	}
	switch isEmpty := len(files) == 0 && len(q.Services) == 0; {
	case isEmpty && values.Has("query"):
		return nil, newError(http.StatusBadRequest, "query: must be the name of a service or file")
	case isEmpty && !o.isSet():
		return nil, nil
	case isEmpty:
		return nil, newError(http.StatusNotAcceptable, "query: required with sinceTime, untilTime, tailLines, boot and pattern")
	case len(files) > 0:
		return q, q.setFile(files)
	}
	return q, q.checkServices()
}

// parseOptions parses and checks the parameters other than query. An empty value means that the
// parameter is not set.
func parseOptions(values url.Values) (o options, err error) {
	if o.Since, err = parseTime(values, "sinceTime"); err != nil {
		return o, err
	}
	if o.Until, err = parseTime(values, "untilTime"); err != nil {
		return o, err
	}
	if o.Tail, err = parseInt(values, "tailLines"); err != nil {
		return o, err
	}
	if o.Boot, err = parseInt(values, "boot"); err != nil {
		return o, err
	}
	o.Pattern = values.Get("pattern")
	return o, o.check()
}

func parseTime(values url.Values, name string) (time.Time, error) {
	text := values.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, newError(http.StatusBadRequest, "%s: %.40q is not a time in the format 2006-01-02T15:04:05Z", name, text)
	}
	return t, nil
}

func parseInt(values url.Values, name string) (*int, error) {
	text := values.Get(name)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, newError(http.StatusBadRequest, "%s: %.40q is not a number", name, text)
	}
	return &n, nil
}

// check checks the values of options.
func (o options) check() error {
	switch {
	case !o.Since.IsZero() && !o.Until.IsZero() && o.Since.After(o.Until):
		return newError(http.StatusNotAcceptable, "untilTime: must not be before sinceTime")
	case o.Boot != nil && *o.Boot > 0:
		return newError(http.StatusNotAcceptable, "boot: %d is too large; must be at most 0, the current boot", *o.Boot)
	case o.Tail != nil && (*o.Tail < 0 || *o.Tail > maxTailLines):
		return newError(http.StatusNotAcceptable, "tailLines: %d is out of range; must be between 0 and %d", *o.Tail, maxTailLines)
	case len(o.Pattern) > maxPatternBytes:
		return newError(http.StatusNotAcceptable, "pattern: %d bytes are too many; must be at most %d", len(o.Pattern), maxPatternBytes)
	case strings.ContainsRune(o.Pattern, 0):
		return newError(http.StatusNotAcceptable, "pattern: contains a NUL byte")
	}
	if _, err := syntax.Parse(o.Pattern, syntax.Perl); err != nil {
		return newError(http.StatusNotAcceptable, "pattern: %v", err)
	}
	return nil
}

// setFile sets the field File to the only element of names. A leading slash stands for the directory
// of logs.
func (q *query) setFile(names []string) error {
	switch {
	case len(q.Services) > 0:
		return newError(http.StatusNotAcceptable, "query: cannot contain both services and a file")
	case len(names) > 1:
		return newError(http.StatusNotAcceptable, "query: cannot contain more than one file")
	case q.Options.isSet():
		return newError(http.StatusNotAcceptable, "query: cannot use sinceTime, untilTime, tailLines, boot and pattern with a file; remove them")
	}
	name := strings.Trim(names[0], "/")
	if name == "" {
		name = "."
	}
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return newError(http.StatusNotAcceptable, "query: %.100q is not the path of a file below the directory of logs", names[0])
	}
	q.File = path.Clean(name)
	return nil
}

// checkServices checks the names and the number of services.
func (q *query) checkServices() error {
	if n := len(q.Services); n > maxServices {
		return newError(http.StatusNotAcceptable, "query: %d services are too many; must be at most %d", n, maxServices)
	}
	for _, name := range q.Services {
		if !validServiceName(name) {
			return newError(http.StatusNotAcceptable, "query: %.100q is not the name of a service; must have at most %d letters, digits and characters of -_.:@", name, maxServiceNameBytes)
		}
	}
	return nil
}

// validServiceName reports whether name has only the characters that the kubelet allows, and is not
// a path element that refers to a directory.
func validServiceName(name string) bool {
	if len(name) > maxServiceNameBytes || name == "." || name == ".." {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.:@", c) >= 0:
		default:
			return false
		}
	}
	return name != ""
}

// newError returns a *server.Error with an HTTP status.
func newError(status int, format string, args ...any) error {
	return &server.Error{Status: status, Message: fmt.Sprintf(format, args...)}
}
