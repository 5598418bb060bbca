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

// URLOptions configure a URL in addition to Options. All fields are optional.
type URLOptions struct {
	Options
	// Header is sent with every request. No message or log contains its values.
	Header http.Header
	// HeaderFile is the path of a file with additional headers, one "Name: value" per line. They
	// override Header. The file is read for every request.
	HeaderFile string
	// CAFile is the path of a file with the certificate authorities to trust; "" means the system's
	// authorities.
	CAFile string
	// CertFile and KeyFile are the paths of the client's certificate and its private key. The files
	// CAFile, CertFile and KeyFile are read again when they change.
	CertFile, KeyFile string
	// machineIDFile is the path of a file with the value of {machineID}; "" means /etc/machine-id.
	machineIDFile string
	// Timeout is the timeout of a whole request, from the connection to the last byte of the
	// response. If it is zero or negative, 10 s is used.
	Timeout time.Duration
	// Label distinguishes sources whose URLs differ only in userinfo or query, because the name of
	// a source contains neither. If Label is not "", the name ends in "#" and the label.
	Label string
}

// A URL is a manifest that podd polls from a server.
type URL struct {
	template string
	name     string
	opts     URLOptions
	// dial and random are replaced only in tests. dial may be nil.
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	random func() float64
}

var _ Source = (*URL)(nil)

// NewURL returns the source for a URL. The escaped node name replaces {node}, and the escaped
// machine ID replaces {machineID}. Errors and the name of the source contain neither userinfo
// nor query.
func NewURL(template string, o URLOptions) (*URL, error) {
	u := &URL{template: template, opts: o, random: rand.Float64}
	const placeholder = "machineID-machineID"
	parsedURL, err := u.parse(placeholder)
	if err != nil {
		return nil, fmt.Errorf("parsing a manifest URL: %w", err)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, fmt.Errorf("manifest URL %s: a client certificate needs both a certificate file and a key file", withoutSecrets(parsedURL))
	}
	if err := checkHeader(o.Header); err != nil {
		return nil, fmt.Errorf("checking the headers of manifest URL %s: %w", withoutSecrets(parsedURL), err)
	}
	u.name = strings.ReplaceAll(withoutSecrets(parsedURL), placeholder, "{machineID}")
	if o.Label != "" {
		u.name += "#" + o.Label
	}
	u.opts.Options = o.Options.withDefaults(manifest.KindURL, u.name)
	u.opts.machineIDFile = cmp.Or(o.machineIDFile, "/etc/machine-id")
	u.opts.Header = o.Header.Clone()
	if o.Timeout <= 0 {
		u.opts.Timeout = 10 * time.Second
	}
	return u, nil
}

// Name returns the URL without userinfo and query.
func (u *URL) Name() string { return u.name }

// Kind returns manifest.KindURL.
func (u *URL) Kind() string { return manifest.KindURL }

// parse replaces the placeholders in the template and parses the result. Its errors contain no
// part of the template.
func (u *URL) parse(machineID string) (*url.URL, error) {
	path, query, hasQuery := strings.Cut(u.template, "?")
	text := fillPlaceholders(path, url.PathEscape, u.opts.NodeName, machineID)
	if hasQuery {
		text += "?" + fillPlaceholders(query, url.QueryEscape, u.opts.NodeName, machineID)
	}
	parsedURL, err := url.Parse(text)
	var urlErr *url.Error
	switch {
	case errors.As(err, &urlErr):
		return nil, fmt.Errorf("invalid URL: %w", redactError(urlErr.Err))
	case err != nil:
		return nil, errors.New("invalid URL")
	case parsedURL.Scheme != "http" && parsedURL.Scheme != "https":
		return nil, errors.New("must begin with https:// or http://")
	case parsedURL.Hostname() == "":
		return nil, errors.New("no host")
	}
	parsedURL.Fragment, parsedURL.RawFragment = "", ""
	return parsedURL, nil
}

// redactError returns err, or another error if the text of err may quote the URL.
func redactError(err error) error {
	if strings.ContainsAny(err.Error(), `"%`) {
		return errors.New("malformed")
	}
	return err
}

func fillPlaceholders(s string, escape func(string) string, node, machineID string) string {
	return strings.NewReplacer("{node}", escape(node), "{machineID}", escape(machineID)).Replace(s)
}

// withoutSecrets returns u without userinfo, query and fragment.
func withoutSecrets(u *url.URL) string {
	publicURL := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return publicURL.String()
}

// nextURL returns the URL for the next request.
func (u *URL) nextURL() (*url.URL, error) {
	if !strings.Contains(u.template, "{machineID}") {
		return u.parse("")
	}
	data, _, err := readSettingsFile(u.opts.machineIDFile)
	if err != nil {
		return nil, fmt.Errorf("reading the machine ID %q: %w", u.opts.machineIDFile, withoutPath(err))
	}
	id := strings.TrimSpace(string(data))
	if id == "" || strings.Trim(id, "0123456789abcdefABCDEF-") != "" {
		return nil, fmt.Errorf("reading the machine ID %q: the file contains no machine ID; create one with systemd-machine-id-setup", u.opts.machineIDFile)
	}
	return u.parse(id)
}
