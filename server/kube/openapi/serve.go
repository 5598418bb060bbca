package openapi

import (
	"net/http"
	"strings"
	"sync"

	"github.com/munnerz/goautoneg"

	"podd/server"
)

// Handler serves the documents of resources at /openapi/v3 and below. It creates the documents when
// they are first requested.
type Handler struct {
	documents func() *documents
}

// documents contains the documents and their index.
type documents struct {
	index  *cachedDocument
	byName map[string]*cachedDocument
}

// New returns a Handler for resources, which must not change afterwards. version is
// podd's version.
func New(version string, resources []Resource) *Handler {
	return &Handler{sync.OnceValue(func() *documents { return newDocuments(Describe(version, resources)) })}
}

func newDocuments(byName map[string]*Document) *documents {
	v := &documents{byName: map[string]*cachedDocument{}}
	var index struct {
		Paths map[string]location `json:"paths"`
	}
	index.Paths = map[string]location{}
	for name, d := range byName {
		k := compressJSON(d)
		v.byName[name] = k
		index.Paths[name] = location{hashedURL(name, k)}
	}
	v.index = compressJSON(index)
	return v
}

type location struct {
	URL string `json:"serverRelativeURL"`
}

// hashedURL returns the URL of the current content of a document.
func hashedURL(name string, k *cachedDocument) string {
	return "/openapi/v3/" + name + "?hash=" + k.etag
}

// mediaProto2 is the media type of OpenAPI version 2 documents as protobuf. kubectl reads no other
// encoding of version 2.
const mediaProto2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, isDocument := strings.CutPrefix(r.URL.Path, "/openapi/v3/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		replyError(w, http.StatusMethodNotAllowed, "OpenAPI documents are read-only; use GET")
	case r.URL.Path == "/openapi/v2":
		w.Header().Set("Content-Type", mediaProto2) // no body, because the protobuf encoding of an empty message has no bytes
	case r.URL.Path == "/openapi/v3":
		h.documents().index.serve(w, r)
	case isDocument && h.documents().byName[name] != nil:
		h.serveDocument(w, r, name)
	default:
		replyError(w, http.StatusNotFound, "no OpenAPI document "+r.URL.Path+"; /openapi/v3 lists all documents")
	}
}

// serveDocument serves a document. If the request contains the hash of the current content,
// the response can be cached forever. A request with any other hash is redirected to the
// current content.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, name string) {
	if !acceptsJSON(r) {
		replyError(w, http.StatusNotAcceptable, "the OpenAPI version 3 documents are available only as "+mediaJSON)
		return
	}
	k := h.documents().byName[name]
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != k.etag {
			http.Redirect(w, r, hashedURL(name, k), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	k.serve(w, r)
}

// acceptsJSON reports whether the client accepts JSON.
func acceptsJSON(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return accept == "" || goautoneg.Negotiate(accept, []string{mediaJSON}) != ""
}

// replyError responds with a Status, as clients of the Kubernetes API expect.
func replyError(w http.ResponseWriter, code int, message string) {
	server.ReplyStatus(w, &server.Error{Status: code, Message: message})
}
