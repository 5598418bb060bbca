package openapi

import (
	"net/http"
	"strings"
	"sync"

	"github.com/munnerz/goautoneg"

	"podd/server"
)

// Handler serves the documents of resources at /openapi/v2, /openapi/v3 and
// below. It keeps nothing before the first request, then what was asked for.
type Handler struct {
	version3 func() *versions3
	json2    func() *kept
	proto2   func() *kept
}

// versions3 are the index and the documents it names.
type versions3 struct {
	index     *kept
	documents map[string]*kept
}

// New describes resources, none of which may change. version is podd's.
func New(version string, resources []Resource) *Handler {
	whole := func() *Swagger { return swagger(Describe(version, resources)) }
	return &Handler{
		version3: sync.OnceValue(func() *versions3 { return keep3(Describe(version, resources)) }),
		json2:    sync.OnceValue(func() *kept { return keep(whole()) }),
		proto2:   sync.OnceValue(func() *kept { return keepAs(inProto, whole().proto()) }),
	}
}

func keep3(documents map[string]*Document) *versions3 {
	v := &versions3{documents: map[string]*kept{}}
	var index struct {
		Paths map[string]address `json:"paths"`
	}
	index.Paths = map[string]address{}
	for name, d := range documents {
		k := keep(d)
		v.documents[name] = k
		index.Paths[name] = address{hashed(name, k)}
	}
	v.index = keep(index)
	return v
}

type address struct {
	URL string `json:"serverRelativeURL"`
}

// hashed is where this content of a document is.
func hashed(name string, k *kept) string { return "/openapi/v3/" + name + "?hash=" + k.etag }

const (
	// asksProto is how clients ask for version 2 as protobuf. It is no valid
	// media type, and an answer needs one.
	asksProto = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	inProto   = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, "/openapi/v3/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "OpenAPI documents are only read: use GET")
	case r.URL.Path == "/openapi/v2":
		h.serve2(w, r)
	case r.URL.Path == "/openapi/v3":
		h.version3().index.serve(w, r)
	case below && h.version3().documents[name] != nil:
		h.serve3(w, r, name)
	default:
		refuse(w, http.StatusNotFound, "no OpenAPI document "+r.URL.Path+"; /openapi/v3 lists them")
	}
}

func (h *Handler) serve2(w http.ResponseWriter, r *http.Request) {
	switch negotiate(r, inJSON, asksProto, inProto) {
	case inJSON:
		h.json2().serve(w, r)
	case "":
		refuse(w, http.StatusNotAcceptable, "OpenAPI version 2 is served as "+inJSON+" and "+inProto)
	default:
		h.proto2().serve(w, r)
	}
}

// serve3 serves a document, for good if its hash is asked for; another's hash
// is an older content, whose place the present one has taken.
func (h *Handler) serve3(w http.ResponseWriter, r *http.Request, name string) {
	if negotiate(r, inJSON) == "" {
		refuse(w, http.StatusNotAcceptable, "OpenAPI version 3 is served as "+inJSON)
		return
	}
	k := h.version3().documents[name]
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != k.etag {
			http.Redirect(w, r, hashed(name, k), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	k.serve(w, r)
}

// negotiate is the media type of these that the client prefers; "": none.
func negotiate(r *http.Request, media ...string) string {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept == "" {
		return media[0]
	}
	return goautoneg.Negotiate(accept, media)
}

// refuse answers with a Status, as clients of the Kubernetes API expect.
func refuse(w http.ResponseWriter, code int, message string) {
	server.ReplyStatus(w, &server.Error{Status: code, Message: message})
}
