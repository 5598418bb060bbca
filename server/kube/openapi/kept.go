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

// kept is a document as it is kept: compressed.
type kept struct {
	media string
	etag  string
	gz    []byte
}

// keep keeps v as JSON.
func keep(v any) *kept {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // nothing in a document can fail
		panic("openapi: " + err.Error())
	}
	return keepAs(inJSON, text.Bytes())
}

func keepAs(media string, text []byte) *kept {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text) // a bytes.Buffer takes all
	w.Close()
	sum := sha256.Sum256(text)
	return &kept{media, strings.ToUpper(hex.EncodeToString(sum[:16])), bytes.Clone(b.Bytes())}
}

// serve answers with k.
func (k *kept) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", `"`+k.etag+`"`)
	h.Add("Vary", "Accept, Accept-Encoding")
	if matches(r.Header.Get("If-None-Match"), k.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", k.media)
	h.Set("X-Content-Type-Options", "nosniff")
	if accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		w.Write(k.gz) // a client that went away needs no answer
		return
	}
	if text, err := gzip.NewReader(bytes.NewReader(k.gz)); err == nil {
		io.Copy(w, text)
	}
}

// matches tells whether an If-None-Match names the tag.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == `"`+etag+`"` {
			return true
		}
	}
	return false
}

// accepts tells whether an Accept-Encoding allows a coding.
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
