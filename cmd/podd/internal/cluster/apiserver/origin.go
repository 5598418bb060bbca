package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"podd/runtime/atomicfile"
)

// An Origin identifies a cluster by the UIDs of the Service default/kubernetes and of this Node.
// An API server that has lost its data creates the Service with another UID. If a user deletes
// one of the two objects, the remaining object still identifies the cluster.
type Origin struct {
	// CADigest is the digest of the CA that the kubeconfig trusts.
	CADigest   string    `json:"authority"`
	ServiceUID types.UID `json:"service,omitempty"` // "" if the Service does not exist or podd may not read it
	NodeUID    types.UID `json:"node,omitempty"`    // "" if the Node does not exist
}

// IsSameCluster reports whether o and previous identify the same cluster. This is the case if they
// have a UID in common. IsSameCluster also returns true if previous has no UIDs.
func (o Origin) IsSameCluster(previous Origin) bool {
	return previous.ServiceUID+previous.NodeUID == "" || o.ServiceUID != "" && o.ServiceUID == previous.ServiceUID || o.NodeUID != "" && o.NodeUID == previous.NodeUID
}

// HasMoved reports whether the kubeconfigs of o and previous trust different CAs. In this case the
// user has moved the node to another cluster.
func (o Origin) HasMoved(previous Origin) bool { return o.CADigest != previous.CADigest }

// FetchOrigin reads the Service default/kubernetes and the Node from the API server and returns the
// origin. A UID is "" if its object does not exist or may not be read.
func (c *Client) FetchOrigin(ctx context.Context, node string) (Origin, error) {
	o := Origin{CADigest: c.CADigest}
	var s v1.Service
	var n v1.Node
	err := c.Do(ctx, c.Core.Get().Namespace(v1.NamespaceDefault).Resource("services").Name("kubernetes"), &s)
	if err == nil {
		o.ServiceUID = s.UID
	} else if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return o, err
	}
	if err = c.Do(ctx, c.Core.Get().Resource("nodes").Name(node), &n); err == nil {
		o.NodeUID = n.UID
	} else if !apierrors.IsNotFound(err) {
		return o, err
	}
	return o, nil
}

// AuthorityDigest returns the digest of the CA in config, or of the host in the server's URL if
// config has no CA.
func AuthorityDigest(config *rest.Config) (string, error) {
	ca := config.CAData
	if len(ca) == 0 && config.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(config.CAFile); err != nil {
			return "", err
		}
	}
	if len(ca) == 0 {
		ca = []byte(config.Host)
	}
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:8]), nil
}

// ErrInvalidOrigin is the error of ReadOrigin if the content of the file is invalid.
var ErrInvalidOrigin = errors.New("invalid content")

// ReadOrigin returns the stored origin, or the zero origin if the file does not exist. The error
// wraps ErrInvalidOrigin if the content is invalid.
func ReadOrigin(path string) (o Origin, err error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o, nil
	case err != nil:
		return o, fmt.Errorf("reading the stored identity of the cluster: %w", err)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return Origin{}, fmt.Errorf("reading the stored identity of the cluster in %s: %w: %w", path, ErrInvalidOrigin, err)
	}
	return o, nil
}

// Write stores o in the file at path. The file must survive a power failure, because the
// API server may lose its data in the same power failure.
func (o Origin) Write(path string) error {
	data, err := json.Marshal(o)
	if err == nil {
		err = atomicfile.Write(path, data)
	}
	if err != nil {
		err = fmt.Errorf("storing the identity of the cluster: %w", err)
	}
	return err
}
