package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// connectTime is the timeout of calls to the registration service of a plugin.
const connectTime = 10 * time.Second

// Limits of a plugin's description of itself.
const (
	maxName     = 253
	maxPath     = 4096
	maxVersions = 16
	maxMessage  = 64 << 10
)

// Dial returns a connection to a plugin's socket, which is established on first use.
func Dial(socket string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+socket, append([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithReadBufferSize(8 << 10), grpc.WithWriteBufferSize(8 << 10),
	}, opts...)...)
}

// register gets the description of the plugin at a socket, registers it with its Kind,
// and notifies the plugin of the result. A plugin of an unsupported kind is not notified,
// because it would exit after a failed registration and would be restarted endlessly.
func (w *Watcher) register(ctx context.Context, socket string) (Registration, error) {
	conn, err := Dial(socket, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	api := v1.NewRegistrationClient(conn)
	info, err := api.GetInfo(limited, &v1.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("getting its description: %w", Plain(err))
	}
	kind := w.Kinds[info.GetType()]
	if kind == nil {
		return nil, w.unsupported(info.GetType())
	}
	var r Registration
	p, err := pluginInfo(info, socket)
	if err == nil {
		r, err = kind.Register(ctx, p)
	}
	result := &v1.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		result.Error = err.Error()
	}
	limited, cancel = context.WithTimeout(ctx, connectTime)
	defer cancel()
	if _, failed := api.NotifyRegistrationStatus(limited, result); failed != nil && err == nil {
		w.Log.Warn("notifying a plugin of its registration failed", "socket", socket, "err", Plain(failed))
	}
	return r, err
}

// pluginInfo returns the checked description of the plugin at a socket.
func pluginInfo(info *v1.PluginInfo, socket string) (Plugin, error) {
	p := Plugin{Name: info.GetName(), Endpoint: info.GetEndpoint(), Versions: info.GetSupportedVersions()}
	if p.Endpoint == "" {
		p.Endpoint = socket
	}
	switch {
	case p.Name == "" || len(p.Name) > maxName:
		return p, fmt.Errorf("its name has %d characters; a name has 1 to %d", len(p.Name), maxName)
	case !filepath.IsAbs(p.Endpoint) || len(p.Endpoint) > maxPath || strings.ContainsRune(p.Endpoint, 0):
		return p, errors.New("its endpoint is not an absolute path")
	case len(p.Versions) > maxVersions:
		return p, fmt.Errorf("it supports %d versions, more than %d", len(p.Versions), maxVersions)
	}
	p.Endpoint = filepath.Clean(p.Endpoint)
	return p, nil
}

// maxText is the maximum length in bytes of a plugin's text in messages.
const maxText = 512

// Plain returns an error with only the message of a gRPC error of a plugin, truncated like
// Bounded.
func Plain(err error) error { return errors.New(Bounded(status.Convert(err).Message())) }

// Bounded returns a plugin's text as valid UTF-8, truncated for messages.
func Bounded(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
