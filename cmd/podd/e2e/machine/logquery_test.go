//go:build e2e

package machine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestLogQuery checks queries for the log of a service in the journal of systemd.
func TestLogQuery(t *testing.T) {
	configure(t, "enableSystemLogQuery: true")
	run(t, "systemd-run --wait --collect --unit=podd-query echo marker one")
	time.Sleep(time.Second)
	between := time.Now().UTC().Format(time.RFC3339)
	time.Sleep(time.Second)
	run(t, "systemd-run --wait --collect --unit=podd-query echo marker two")
	eventually(t, "the journal contains both lines", func() error {
		if text := queryLog(t, "query=podd-query"); !strings.Contains(text, "marker one\n") || !strings.Contains(text, "marker two\n") {
			return errors.New("got " + text)
		}
		return nil
	})
	const one, two = "marker one", "marker two"
	for query, want := range map[string]string{
		"query=podd-query&pattern=" + url.QueryEscape("^marker (one|three)"): one,
		"query=podd-query.service&pattern=marker&sinceTime=" + between:       two,
		"query=podd-query&pattern=marker&untilTime=" + between:               one,
		"query=podd-query&pattern=marker&tailLines=1":                        two,
		"query=podd-query&pattern=marker&boot=0&tailLines=1":                 two,
	} {
		var found []string
		for _, marker := range []string{one, two} {
			if strings.Contains(queryLog(t, query), ": "+marker+"\n") {
				found = append(found, marker)
			}
		}
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s: got %q, want %q in the log:\n%s", query, got, want, queryLog(t, query))
		}
	}
	if got, want := queryLog(t, "query=podd-quer"), "no log of service podd-quer found"; !strings.Contains(got, want) {
		t.Errorf("part of a name: got %q, want %q in it", got, want)
	}
}

// queryLog returns the response of podd to a query for logs.
func queryLog(t *testing.T, query string) string {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", "/run/podd/podd.sock")
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://podd/logs/?" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %v: %s", query, response.Status, err, text)
	}
	return string(text)
}
