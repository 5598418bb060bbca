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

	"podd/manifest/durable"
)

// origin tells one cluster from another. An API server makes the Service kubernetes
// anew, with another UID, once what it keeps is gone; and whoever deletes that
// Service does not delete the Node, too.
type origin struct {
	// Authority is the digest of whom the kubeconfig trusts.
	Authority string    `json:"authority"`
	Service   types.UID `json:"service,omitempty"` // "" for none
	Node      types.UID `json:"node,omitempty"`
}

// sameAs: one of what has a UID is enough. Nothing known is like all.
func (o origin) sameAs(before origin) bool {
	return before.Service+before.Node == "" || o.Service != "" && o.Service == before.Service || o.Node != "" && o.Node == before.Node
}

// moved: the user gave podd to another cluster.
func (o origin) moved(before origin) bool { return o.Authority != before.Authority }

// origin asks for that of the cluster as it is now.
func (c *client) origin(ctx context.Context, node string) (origin, error) {
	o := origin{Authority: c.authority}
	var s v1.Service
	var n v1.Node
	err := c.into(ctx, c.core.Get().Namespace(v1.NamespaceDefault).Resource("services").Name("kubernetes"), &s)
	if err == nil {
		o.Service = s.UID
	} else if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return o, err
	}
	if err = c.into(ctx, c.core.Get().Resource("nodes").Name(node), &n); err == nil {
		o.Node = n.UID
	} else if !apierrors.IsNotFound(err) {
		return o, err
	}
	return o, nil
}

// authorityOf is whom a configuration trusts to be the cluster, or else where it is.
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

// errBroken is that a file is there and tells of no origin.
var errBroken = errors.New("the file is broken")

// recall reads the origin of the pods that may be here; zero: there are none, or,
// with errBroken in the error, nobody knows any more.
func recall(path string) (o origin, err error) {
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

// remember outlasts a loss of power: what is lost with it is perhaps the cluster, too.
func (o origin) remember(path string) error {
	text, err := json.Marshal(o)
	if err == nil {
		err = durable.Write(path, text)
	}
	if err != nil {
		err = fmt.Errorf("remembering which cluster the pods here are from: %w", err)
	}
	return err
}
