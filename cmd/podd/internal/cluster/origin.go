package cluster

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

// An origin identifies a cluster. An API server that has lost its data creates the
// Service "kubernetes" with another UID. If a user deletes the Service, the UID of the
// Node still identifies the cluster.
type origin struct {
	// Authority is the digest of the CA that the kubeconfig trusts.
	Authority string    `json:"authority"`
	Service   types.UID `json:"service,omitempty"` // "" for none
	Node      types.UID `json:"node,omitempty"`
}

// sameAs reports whether one of the UIDs is equal. An empty origin equals all.
func (o origin) sameAs(before origin) bool {
	return before.Service+before.Node == "" || o.Service != "" && o.Service == before.Service || o.Node != "" && o.Node == before.Node
}

// hasMoved reports whether the user has moved the node to another cluster.
func (o origin) hasMoved(before origin) bool { return o.Authority != before.Authority }

// origin requests the current origin of the cluster.
func (c *client) origin(ctx context.Context, node string) (origin, error) {
	o := origin{Authority: c.authority}
	var s v1.Service
	var n v1.Node
	err := c.do(ctx, c.core.Get().Namespace(v1.NamespaceDefault).Resource("services").Name("kubernetes"), &s)
	if err == nil {
		o.Service = s.UID
	} else if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return o, err
	}
	if err = c.do(ctx, c.core.Get().Resource("nodes").Name(node), &n); err == nil {
		o.Node = n.UID
	} else if !apierrors.IsNotFound(err) {
		return o, err
	}
	return o, nil
}

// authorityOf returns the digest of the trusted CA or, without one, of the host.
func authorityOf(config *rest.Config) (string, error) {
	trusted := config.CAData
	if len(trusted) == 0 && config.CAFile != "" {
		var err error
		if trusted, err = os.ReadFile(config.CAFile); err != nil {
			return "", err
		}
	}
	if len(trusted) == 0 {
		trusted = []byte(config.Host)
	}
	sum := sha256.Sum256(trusted)
	return hex.EncodeToString(sum[:8]), nil
}

// errBroken is the error of a file with invalid content.
var errBroken = errors.New("the file is broken")

// readOrigin returns the stored origin. It is zero if there is none, or if the file is
// broken, with errBroken.
func readOrigin(path string) (o origin, err error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o, nil
	case err != nil:
		return o, fmt.Errorf("reading which cluster the pods here are from: %w", err)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return origin{}, fmt.Errorf("reading which cluster the pods here are from: %s: %w: %w", path, errBroken, err)
	}
	return o, nil
}

// write stores the origin durably, because a loss of power may affect the cluster as
// well.
func (o origin) write(path string) error {
	text, err := json.Marshal(o)
	if err == nil {
		err = atomicfile.Write(path, text)
	}
	if err != nil {
		err = fmt.Errorf("remembering which cluster the pods here are from: %w", err)
	}
	return err
}
