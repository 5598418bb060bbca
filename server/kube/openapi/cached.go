package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// cached is a compressed JSON document.
type cached struct {
	etag string
	gz   []byte
}

// compressJSON returns v as a compressed JSON document.
func compressJSON(v any) *cached {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // cannot happen: every type can be encoded
		panic("openapi: " + err.Error())
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text.Bytes()) // writing to a bytes.Buffer cannot fail
	w.Close()
	sum := sha256.Sum256(text.Bytes())
	return &cached{strings.ToUpper(hex.EncodeToString(sum[:16])), bytes.Clone(b.Bytes())}
}

// serve responds with the document.
func (k *cached) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", `"`+k.etag+`"`)
	h.Add("Vary", "Accept, Accept-Encoding")
	if matches(r.Header.Get("If-None-Match"), k.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", mediaJSON)
	h.Set("X-Content-Type-Options", "nosniff")
	if accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		w.Write(k.gz) // an error means that the client has disconnected
		return
	}
	if text, err := gzip.NewReader(bytes.NewReader(k.gz)); err == nil {
		io.Copy(w, text)
	}
}

// matches reports whether an If-None-Match header includes the tag.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == `"`+etag+`"` {
			return true
		}
	}
	return false
}

// accepts reports whether an Accept-Encoding header allows a content coding.
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			_, q, _ := strings.Cut(weight, "=")
			return strings.Trim(q, " 0.") != "" || weight == ""
		}
	}
	return false
}
