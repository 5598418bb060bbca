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

// A cachedDocument is a compressed JSON document.
type cachedDocument struct {
	etag    string
	gzipped []byte
}

// compressJSON returns v as a compressed JSON document.
func compressJSON(v any) *cachedDocument {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // cannot happen, because every type can be encoded
		panic("openapi: " + err.Error())
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text.Bytes()) // writing to a bytes.Buffer cannot fail
	w.Close()
	sum := sha256.Sum256(text.Bytes())
	return &cachedDocument{strings.ToUpper(hex.EncodeToString(sum[:16])), bytes.Clone(b.Bytes())}
}

// serve responds with the document.
func (k *cachedDocument) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", `"`+k.etag+`"`)
	h.Add("Vary", "Accept, Accept-Encoding")
	if matchesETag(r.Header.Get("If-None-Match"), k.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", mediaJSON)
	h.Set("X-Content-Type-Options", "nosniff")
	if acceptsCoding(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		w.Write(k.gzipped) // ignore an error: it means that the client has disconnected
		return
	}
	if text, err := gzip.NewReader(bytes.NewReader(k.gzipped)); err == nil {
		io.Copy(w, text)
	}
}

// matchesETag reports whether an If-None-Match header includes the tag.
func matchesETag(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == `"`+etag+`"` {
			return true
		}
	}
	return false
}

// acceptsCoding reports whether an Accept-Encoding header allows a content coding.
func acceptsCoding(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			_, q, _ := strings.Cut(weight, "=")
			return strings.Trim(q, " 0.") != "" || weight == ""
		}
	}
	return false
}
