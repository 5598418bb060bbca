package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"podd/manifest"
)

// URLOptions are what a URL needs beside a source's Options. All are optional.
type URLOptions struct {
	Options
	// Header is sent with every request; its values are never shown.
	Header http.Header
	// HeaderFile holds more of it, a "Name: value" on each line; it is read
	// again when it changes, and wins over Header.
	HeaderFile string
	// CAFile holds the only authorities that are trusted; "": the system's.
	CAFile string
	// CertFile and KeyFile are the client's certificate. They and CAFile are
	// read again when they change.
	CertFile, KeyFile string
	// MachineIDFile is what {machineID} stands for; "" is /etc/machine-id.
	MachineIDFile string
	// Timeout is for a whole request, from connecting to the last byte; zero or
	// less is 10 s.
	Timeout time.Duration
	// Label tells sources apart whose URLs differ only in what is not shown:
	// the name of the source ends in "#label".
	Label string
}

// URL is a manifest that a server serves, polled.
type URL struct {
	template string
	name     string
	opts     URLOptions
	// dial and random are the network's and chance's, or a test's; dial may be
	// nil.
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	random func() float64
}

var _ Source = (*URL)(nil)

// NewURL returns the source of a URL, in which {node} and {machineID} stand for
// what they say, escaped. Errors and the name hold neither userinfo nor query.
func NewURL(raw string, o URLOptions) (*URL, error) {
	u := &URL{template: raw, opts: o, random: rand.Float64}
	const machine = "machineID-machineID"
	parsed, err := u.parse(machine)
	if err != nil {
		return nil, fmt.Errorf("reading a manifest URL: %w", err)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, fmt.Errorf("reading manifest URL %s: a client certificate needs both its file and its key's", shown(parsed))
	}
	if err := checkHeader(o.Header); err != nil {
		return nil, fmt.Errorf("reading the headers of manifest URL %s: %w", shown(parsed), err)
	}
	u.name = strings.ReplaceAll(shown(parsed), machine, "{machineID}")
	if o.Label != "" {
		u.name += "#" + o.Label
	}
	u.opts.Options = o.Options.complete(manifest.KindURL, u.name)
	u.opts.MachineIDFile = cmp.Or(o.MachineIDFile, "/etc/machine-id")
	u.opts.Header = o.Header.Clone()
	if o.Timeout <= 0 {
		u.opts.Timeout = 10 * time.Second
	}
	return u, nil
}

// Name is the URL without userinfo and query.
func (u *URL) Name() string { return u.name }

// Kind is manifest.KindURL.
func (u *URL) Kind() string { return manifest.KindURL }

// parse fills in the template. Its errors hold no part of it.
func (u *URL) parse(machineID string) (*url.URL, error) {
	path, query, asked := strings.Cut(u.template, "?")
	whole := fill(path, url.PathEscape, u.opts.Node, machineID)
	if asked {
		whole += "?" + fill(query, url.QueryEscape, u.opts.Node, machineID)
	}
	parsed, err := url.Parse(whole)
	var failed *url.Error
	switch {
	case errors.As(err, &failed):
		return nil, fmt.Errorf("it does not parse: %w", withoutText(failed.Err))
	case err != nil:
		return nil, errors.New("it does not parse")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return nil, errors.New("it must begin with https:// or http://")
	case parsed.Hostname() == "":
		return nil, errors.New("it names no host")
	}
	parsed.Fragment, parsed.RawFragment = "", ""
	return parsed, nil
}

// withoutText drops errors that quote what they could not parse.
func withoutText(err error) error {
	if strings.ContainsAny(err.Error(), `"%`) {
		return errors.New("something in it is malformed")
	}
	return err
}

func fill(s string, escape func(string) string, node, machineID string) string {
	return strings.NewReplacer("{node}", escape(node), "{machineID}", escape(machineID)).Replace(s)
}

// shown is a URL as it may be shown.
func shown(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return bare.String()
}

// target is the URL to ask now.
func (u *URL) target() (*url.URL, error) {
	if !strings.Contains(u.template, "{machineID}") {
		return u.parse("")
	}
	data, _, err := readSmall(u.opts.MachineIDFile)
	if err != nil {
		return nil, fmt.Errorf("reading the machine's id %q: %w", u.opts.MachineIDFile, cause(err))
	}
	id := strings.TrimSpace(string(data))
	if id == "" || strings.Trim(id, "0123456789abcdefABCDEF-") != "" {
		return nil, fmt.Errorf("reading the machine's id %q: it holds none; systemd-machine-id-setup makes one", u.opts.MachineIDFile)
	}
	return u.parse(id)
}
