package plugin

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/reconcile/plugins"
)

// Kind registers the device plugins that wait to be found, see package plugins.
func (s *Server) Kind() plugins.Kind { return found{s} }

type found struct{ s *Server }

// Register implements plugins.Kind.
func (f found) Register(ctx context.Context, p plugins.Plugin) (plugins.Registration, error) {
	if !slices.Contains(p.Versions, v1beta1.Version) {
		return nil, fmt.Errorf("it speaks none of podd's versions, %q", v1beta1.Version)
	}
	r, err := f.s.connect(ctx, p.Name, p.Endpoint)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Gone implements plugins.Registration.
func (r *registered) Gone() <-chan struct{} { return r.followed }

// Displaced implements plugins.Registration.
func (r *registered) Displaced() bool { return r.displaced }

// End implements plugins.Registration.
func (r *registered) End() { r.cancel() }
