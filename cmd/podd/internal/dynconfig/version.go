package dynconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
)

// A Version identifies the content of a configuration. The zero value means that there is none.
type Version struct {
	// Digest is the SHA-256 digest of the content, in hexadecimal digits.
	Digest string `json:"digest"`
	// ConfigMap is the ConfigMap with the content, or nil if the content is that of local files.
	ConfigMap *ConfigMapVersion `json:"configMap,omitempty"`
}

// A ConfigMapVersion is a version of a ConfigMap.
type ConfigMapVersion struct {
	Namespace       string    `json:"namespace"`
	Name            string    `json:"name"`
	Key             string    `json:"key"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// Source returns a description without the digest, such as "the configuration in the files".
func (v Version) Source() string {
	if c := v.ConfigMap; c != nil {
		return fmt.Sprintf("the configuration in ConfigMap %s/%s", c.Namespace, c.Name)
	}
	return "the configuration in the files"
}

// String returns a description such as "the configuration in the files (sha256:0123456789ab)".
func (v Version) String() string { return fmt.Sprintf("%s (sha256:%.12s)", v.Source(), v.Digest) }

// A checkpoint is a configuration that does not depend on files outside of the directory.
type checkpoint struct {
	Version   Version           `json:"version"`
	Documents []config.Document `json:"documents"`
}

// newCheckpoint returns the checkpoint of documents. c is the ConfigMap with the main document, or nil.
func newCheckpoint(docs []config.Document, c *ConfigMapVersion) checkpoint {
	return checkpoint{Version: Version{Digest: digestOf(docs), ConfigMap: c}, Documents: docs}
}

// isIntact reports whether the digest of the checkpoint is that of its documents.
func (c checkpoint) isIntact() bool { return c.Version.Digest == digestOf(c.Documents) }

// digestOf returns the digest of documents.
func digestOf(docs []config.Document) string {
	data, err := json.Marshal(docs)
	if err != nil {
		panic(err) // strings, bytes and bools can always be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A ConfigMap is the content of the ConfigMap that the Node names.
type ConfigMap struct {
	Version ConfigMapVersion `json:"version"`
	Data    string           `json:"data"`
}

// document returns the document with the content of c. Relative paths in it refer to dir.
func (c *ConfigMap) document(dir string) config.Document {
	return config.Document{
		Path: fmt.Sprintf("ConfigMap %s/%s[%s]", c.Version.Namespace, c.Version.Name, c.Version.Key),
		Dir:  dir, Data: []byte(c.Data), IsMain: true,
	}
}
