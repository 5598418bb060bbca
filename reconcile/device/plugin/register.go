package plugin

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/reconcile/plugins"
)

// Handler returns the Handler with which package plugins registers device plugins.
func (s *Server) Handler() plugins.Handler { return handler{s} }

// handler implements plugins.Handler.
type handler struct{ s *Server }

// Register implements plugins.Handler.
func (f handler) Register(ctx context.Context, p plugins.Plugin) (plugins.Registration, error) {
	if !slices.Contains(p.Versions, v1beta1.Version) {
		return nil, fmt.Errorf("the plugin does not support version %q of the device plugin API", v1beta1.Version)
	}
	r, err := f.s.connect(ctx, p.Name, p.Endpoint)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Done implements plugins.Registration.
func (r *registeredClient) Done() <-chan struct{} { return r.done }

// Displaced implements plugins.Registration.
func (r *registeredClient) Displaced() bool { return r.isDisplaced }

// Unregister implements plugins.Registration.
func (r *registeredClient) Unregister() { r.cancel() }
