package request

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Representations that a client can request instead of the objects themselves.
const (
	AsTable        = "Table"
	AsMetadata     = "PartialObjectMetadata"
	AsMetadataList = "PartialObjectMetadataList"
	AsDiscovery    = "APIGroupDiscoveryList"
)

// versions maps each representation to its group version.
var versions = map[string]string{
	AsTable: "meta.k8s.io/v1", AsMetadata: "meta.k8s.io/v1", AsMetadataList: "meta.k8s.io/v1",
	AsDiscovery: "apidiscovery.k8s.io/v2",
}

var errNotAcceptable = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
	Message: "only the following media types are accepted: application/json",
}}

// Negotiate returns the offered representation that the client prefers. "" means the objects
// themselves, which are always available. All representations are JSON.
func Negotiate(r *http.Request, offered ...string) (representation string, err error) {
	return negotiate(strings.Join(r.Header.Values("Accept"), ","), offered...)
}

// negotiate returns the available representation with the highest q value in an Accept header. If
// several have this value, it returns the first.
func negotiate(accept string, offered ...string) (representation string, err error) {
	if strings.TrimSpace(accept) == "" {
		return "", nil
	}
	bestRepresentation, quality := "", 0.0
	for clause := range strings.SplitSeq(accept, ",") {
		representation, q, ok := parseClause(clause, offered)
		if ok && q > quality {
			bestRepresentation, quality = representation, q
		}
	}
	if quality == 0 {
		return "", errNotAcceptable
	}
	return bestRepresentation, nil
}

// parseClause parses a clause of an Accept header. ok reports whether its
// representation is available.
func parseClause(clause string, offered []string) (representation string, q float64, ok bool) {
	kind, p, err := mime.ParseMediaType(clause)
	if err != nil || !slices.Contains([]string{"application/json", "application/*", "*/*"}, kind) {
		return "", 0, false
	}
	q = 1
	if s, hasQuality := p["q"]; hasQuality {
		if q, err = strconv.ParseFloat(s, 64); err != nil {
			return "", 0, false
		}
	}
	representation = p["as"]
	if representation == "" {
		return "", q, true
	}
	return representation, q, slices.Contains(offered, representation) && p["g"]+"/"+p["v"] == versions[representation]
}
