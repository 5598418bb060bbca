package resource

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server/kube/request"
)

// Encoder encodes objects in the representation that a client requests.
type Encoder struct {
	Representation string // "", request.AsTable, request.AsMetadata or request.AsMetadataList
	// now returns the time from which ages in tables are computed.
	now           func() time.Time
	includePolicy metav1.IncludeObjectPolicy // how much of each object a row of a table includes
}

// NewEncoder returns an Encoder for the offered representation that a client prefers. Ages in
// tables are computed from the result of now.
func NewEncoder(r *http.Request, now func() time.Time, offered ...string) (Encoder, error) {
	representation, err := request.Negotiate(r, offered...)
	return Encoder{representation, now, request.IncludePolicy(r)}, err
}

// Encode encodes an object for a response or for an event of a watch. If withColumns is set, a
// table includes the column definitions.
func (f Encoder) Encode(e *Entry, withColumns bool) []byte {
	switch f.Representation {
	case request.AsTable:
		t := newTable([]*Entry{e}, f.now(), e.Rev, f.includePolicy)
		if !withColumns {
			t.ColumnDefinitions = nil // the column definitions were already sent
		}
		return Encode(t)
	case request.AsMetadata:
		return Encode(metadataOf(e.Object))
	}
	return e.JSON()
}

// EncodeList encodes a list at a revision.
func (f Encoder) EncodeList(d *Definition, entries []*Entry, rev uint64) []byte {
	switch f.Representation {
	case request.AsTable:
		return Encode(newTable(entries, f.now(), rev, f.includePolicy))
	case request.AsMetadataList:
		return EncodeList(metav1.TypeMeta{Kind: f.Representation, APIVersion: metav1.SchemeGroupVersion.String()}, entries, rev, func(e *Entry) []byte { return Encode(metadataOf(e.Object)) })
	}
	return EncodeList(d.ListType(), entries, rev, func(e *Entry) []byte { return e.JSON() })
}

// EncodeList assembles a list from encoded objects.
func EncodeList(t metav1.TypeMeta, entries []*Entry, rev uint64, encode func(*Entry) []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, t.Kind, t.APIVersion, rev)
	for n, e := range entries {
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(e))
	}
	b.WriteString("]}\n")
	return b.Bytes()
}
