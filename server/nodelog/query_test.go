package nodelog

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podd/server"
)

func TestParseQuery(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for text, want := range map[string]*query{
		"":                          nil,
		"limit=5":                   nil,
		"sinceTime=&boot=":          nil,
		"query=kubelet":             {Services: []string{"kubelet"}},
		"query=a&query=&query=b":    {Services: []string{"a", "b"}},
		"query=getty@tty1.service":  {Services: []string{"getty@tty1.service"}},
		"query=-.mount":             {Services: []string{"-.mount"}},
		"query=--output":            {Services: []string{"--output"}},
		"query=/syslog":             {File: "syslog"},
		"query=pods/web/0.log":      {File: "pods/web/0.log"},
		"query=/pods/":              {File: "pods"},
		"query=/":                   {File: "."},
		`query=a\b`:                 {File: `a\b`},
		"query=a&tailLines=0":       {Services: []string{"a"}, Options: options{Tail: new(0)}},
		"query=a&boot=-1":           {Services: []string{"a"}, Options: options{Boot: new(-1)}},
		"query=a&pattern=fail(ed)?": {Services: []string{"a"}, Options: options{Pattern: "fail(ed)?"}},
		"query=a&sinceTime=2026-01-02T15:04:05Z&untilTime=2026-01-02T15:04:05Z": {Services: []string{"a"}, Options: options{Since: at, Until: at}},
	} {
		got, err := parseQuery(parse(t, text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: got error %v, want nil; query (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestParseQuery_Invalid(t *testing.T) {
	long := strings.Repeat("a", 257)
	for text, want := range map[string]string{
		"query=":                                      "400 query: must be the name",
		"query=%20&query=":                            "400 query: must be the name",
		"query=a&sinceTime=yesterday":                 `400 sinceTime: "yesterday" is not a time`,
		"query=a&untilTime=2026-01-02":                `400 untilTime: "2026-01-02" is not a time`,
		"query=a&tailLines=x":                         `400 tailLines: "x" is not a number`,
		"query=a&boot=%20":                            `400 boot: " " is not a number`,
		"tailLines=5":                                 "406 query: required with",
		"query=a&tailLines=-1":                        "406 tailLines: -1 is out of range",
		"query=a&tailLines=100001":                    "406 tailLines: 100001 is out of range",
		"query=a&boot=1":                              "406 boot: 1 is too large",
		"query=a&pattern=(":                           "406 pattern: error parsing regexp",
		"query=a&pattern=a%00":                        "406 pattern: contains a NUL byte",
		"query=a&pattern=" + strings.Repeat("a", 5e3): "406 pattern: 5000 bytes are too many",
		"query=a&sinceTime=2026-01-03T00:00:00Z&untilTime=2026-01-02T00:00:00Z": "406 untilTime: must not be before sinceTime",
		"query=a&query=b&query=c&query=d&query=e":                               "406 query: 5 services are too many",
		"query=" + long:           "406 query: \"aaaa",
		"query=..":                `406 query: ".." is not the name of a service`,
		"query=.":                 `406 query: "." is not the name of a service`,
		"query=a%20--file":        `406 query: "a --file" is not the name of a service`,
		"query=*":                 `406 query: "*" is not the name of a service`,
		"query=a%0a":              `406 query: "a\n" is not the name of a service`,
		"query=a%00":              `406 query: "a\x00" is not the name of a service`,
		"query=é":                 `406 query: "é" is not the name of a service`,
		"query=../shadow":         `406 query: "../shadow" is not the path of a file`,
		"query=/../shadow":        `406 query: "/../shadow" is not the path of a file`,
		"query=a/../../shadow":    `406 query: "a/../../shadow" is not the path of a file`,
		"query=a//b":              `406 query: "a//b" is not the path of a file`,
		"query=/a%00":             `406 query: "/a\x00" is not the path of a file`,
		"query=/a&query=/b":       "406 query: cannot contain more than one file",
		"query=/a&query=b":        "406 query: cannot contain both services and a file",
		"query=/a&tailLines=5":    "406 query: cannot use sinceTime",
		"query=/a&pattern=failed": "406 query: cannot use sinceTime",
	} {
		q, err := parseQuery(parse(t, text))
		got := ""
		if err != nil {
			got = fmt.Sprintf("%d %v", server.HTTPStatus(err), err)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%.60s: got query %v, error %q; want error %q", text, q, got, want)
		}
	}
}

// FuzzParseQuery checks that no accepted query adds an option of journalctl that podd does not use,
// and that the path of a file cannot lead out of the directory of logs.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"query=kubelet", "query=../a", "query=-o&pattern=--file", "query=/a/b", "query=a&boot=-1&tailLines=3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := parseQuery(values)
		if err != nil || q == nil {
			return
		}
		if (q.File == "") == (len(q.Services) == 0) || strings.Contains("/"+q.File+"/", "/../") || strings.HasPrefix(q.File, "/") {
			t.Errorf("%q: got query %+v, want either services or one file, whose path is relative and contains no \"..\"", text, q)
		}
		options := []string{"--utc", "--no-pager", "--output=short-precise", "--since=", "--until=", "--lines=", "--unit=", "--grep=", "--boot="}
		for _, arg := range logArgs(q.Services, q.Options) {
			if !hasAnyPrefix(arg, options) || strings.ContainsRune(arg, 0) {
				t.Errorf("%q: got argument %q of journalctl, want one of the options that podd uses", text, arg)
			}
		}
	})
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func parse(t *testing.T, text string) url.Values {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	return values
}
