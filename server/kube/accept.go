package kube

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"podd/server"
)

// form is how a client wants objects: as they are, or as something made of them.
type form struct {
	as string // "", asTable, asMetadata, asMetadataList or asDiscovery
	// now is what tables tell ages of.
	now func() time.Time
}

// form is the one that a request for objects asks for, of those offered.
func (a *API) form(r *http.Request, offered ...string) (form, error) {
	f, err := negotiate(accepted(r), offered...)
	if f.now = a.Now; f.now == nil {
		f.now = time.Now
	}
	return f, err
}

// accepted is what a client says it takes, on however many lines.
func accepted(r *http.Request) string { return strings.Join(r.Header.Values("Accept"), ",") }

const (
	asTable        = "Table"
	asMetadata     = "PartialObjectMetadata"
	asMetadataList = "PartialObjectMetadataList"
	asDiscovery    = "APIGroupDiscoveryList"
)

// versions are those that each form is served in.
var versions = map[string]string{
	asTable: "meta.k8s.io/v1", asMetadata: "meta.k8s.io/v1", asMetadataList: "meta.k8s.io/v1",
	asDiscovery: "apidiscovery.k8s.io/v2",
}

var errNotAcceptable = &server.Error{Status: http.StatusNotAcceptable, Message: "only the following media types are accepted: application/json"}

// negotiate chooses the first form that a client likes most, of those that are
// served: offered names them. All are JSON.
func negotiate(accept string, offered ...string) (form, error) {
	if strings.TrimSpace(accept) == "" {
		return form{}, nil
	}
	best, liked := form{}, 0.0
	for clause := range strings.SplitSeq(accept, ",") {
		f, q, ok := offer(clause, offered)
		if ok && q > liked {
			best, liked = f, q
		}
	}
	if liked == 0 {
		return form{}, errNotAcceptable
	}
	return best, nil
}

// offer is what is served of a clause, and how much it is liked.
func offer(clause string, offered []string) (f form, q float64, ok bool) {
	kind, p, err := mime.ParseMediaType(clause)
	if err != nil || !slices.Contains([]string{"application/json", "application/*", "*/*"}, kind) {
		return f, 0, false
	}
	q = 1
	if s, given := p["q"]; given {
		if q, err = strconv.ParseFloat(s, 64); err != nil {
			return f, 0, false
		}
	}
	f.as = p["as"]
	if f.as == "" {
		return f, q, true
	}
	return f, q, slices.Contains(offered, f.as) && p["g"]+"/"+p["v"] == versions[f.as]
}
