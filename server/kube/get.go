package kube

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/request"
)

func (a *API) get(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	f, err := a.form(r, asTable, asMetadata)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	e, err := a.find(r, res, i)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	reply(w, one(f, e, request.Include(r), true), nil)
}

// find is the object that a path names.
func (a *API) find(r *http.Request, res *resource, i request.Info) (*entry, error) {
	key := server.Key{Name: i.Name}
	if res.namespaced {
		key.Namespace = i.Namespace
	}
	entries, _, err := a.entries(r, res)
	if err != nil {
		return nil, err
	}
	n, found := sort.Find(len(entries), func(n int) int { return key.Compare(entries[n].key) })
	if !found {
		return nil, a.notFound(res, key)
	}
	return entries[n], nil
}

// entries are all of a resource, and the revision they are of.
func (a *API) entries(r *http.Request, res *resource) ([]*entry, uint64, error) {
	if res.measure != nil {
		return a.measured(r.Context(), res)
	}
	entries, rev := a.store.list(res)
	return entries, rev, nil
}

// notFound is as Kubernetes says it. A pod of a file has the node's name behind
// its own, which is easily forgotten.
func (a *API) notFound(res *resource, key server.Key) error {
	err := apierrors.NewNotFound(res.gr(), key.Name)
	v := a.State.View()
	full := server.Key{Namespace: key.Namespace, Name: key.Name + "-" + v.Node}
	if res.name == "pods" && v.Pod(full) != nil {
		err.ErrStatus.Message += fmt.Sprintf("; did you mean %q?", full.Name)
	}
	return err
}

// one is the body that shows an object, or what tells of one in a watch.
func one(f form, e *entry, include metav1.IncludeObjectPolicy, headers bool) []byte {
	switch f.as {
	case asTable:
		t := tableOf([]*entry{e}, f.now(), e.object.GetResourceVersion(), include)
		if !headers {
			t.ColumnDefinitions = nil // who watches was told
		}
		return encode(t)
	case asMetadata:
		return encode(metadata(e.object))
	}
	return e.encoded()
}

func (a *API) list(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	q := r.URL.Query()
	f, err := a.form(r, asTable, asMetadataList)
	if err == nil && q.Get("continue") != "" {
		err = apierrors.NewResourceExpired("podd gives no continue tokens: every list is whole; start again without it")
	}
	var s selection
	if err == nil {
		s, err = selector(res, i.Namespace, q)
	}
	var body []byte
	if err == nil {
		body, err = a.listed(r, res, &s, f)
	}
	reply(w, body, err)
}

func (a *API) listed(r *http.Request, res *resource, s *selection, f form) ([]byte, error) {
	entries, rev, err := a.entries(r, res)
	if err != nil {
		return nil, err
	}
	if err := fits(r.URL.Query(), rev); err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return !s.takes(e.object) })
	version := strconv.FormatUint(rev, 10)
	switch f.as {
	case asTable:
		return encode(tableOf(entries, f.now(), version, request.Include(r))), nil
	case asMetadataList:
		return listOf("PartialObjectMetadataList", metav1.SchemeGroupVersion.String(), version, entries, func(e *entry) []byte { return encode(metadata(e.object)) }), nil
	}
	return listOf(res.kind+"List", res.gvk().GroupVersion().String(), version, entries, func(e *entry) []byte { return e.encoded() }), nil
}

// listOf puts a list together of what is encoded already.
func listOf(kind, apiVersion, version string, entries []*entry, text func(*entry) []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`, kind, apiVersion, version)
	for n, e := range entries {
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(text(e))
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

func reply(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body) // a client that went away needs no answer
}
