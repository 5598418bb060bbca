// Package podsapi serves the kubelet's pods/v1alpha1 API on a Unix socket. Clients such as monitoring
// agents use it to read the pods of this node without an API server. The pods have the status that
// podd last computed.
//
//	ListPods    all pods
//	GetPod      the pod with a UID
//	WatchPods   all pods, the event INITIAL_SYNC_COMPLETE, and then each change
//
// A watch sends the differences between the pods that its client received last and the newest pods.
// So a slow client misses intermediate states, but always receives the newest state. A kubelet closes
// the watch of a slow client instead. If an edit of a static pod changes its UID, the watch sends a
// DELETED event and an ADDED event.
package podsapi

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"podd/server"
	"podd/server/localrpc"
)

// Server serves the pods of a View.
type Server struct {
	State server.Viewer // required
	// OnRequest is called after every request that the limit on requests allows. method is the requested
	// method, such as "ListPods", and code is the gRPC code of the result, such as "OK". OnRequest may be
	// nil. It may be called concurrently.
	OnRequest func(method, code string)
	v1alpha1.UnsafePodsServer
}

// Serve serves on ln until ctx is done.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := localrpc.NewServer(grpc.UnaryInterceptor(s.interceptUnary(localrpc.NewLimiter())), grpc.StreamInterceptor(s.interceptStream))
	v1alpha1.RegisterPodsServer(srv, s)
	if err := localrpc.Serve(ctx, srv, ln); err != nil {
		return fmt.Errorf("serving the pods API: %w", err)
	}
	return nil
}

// interceptUnary returns an interceptor that rejects requests that exceed the rate of l, and calls
// OnRequest for the others.
func (s *Server) interceptUnary(l *rate.Limiter) grpc.UnaryServerInterceptor {
	limit := localrpc.LimitRate(l)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return limit(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			reply, err := handler(ctx, req)
			s.recordRequest(info.FullMethod, err)
			return reply, err
		})
	}
}

// interceptStream is an interceptor that calls OnRequest.
func (s *Server) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, stream)
	s.recordRequest(info.FullMethod, err)
	return err
}

// recordRequest calls OnRequest. err is the result of the request.
func (s *Server) recordRequest(method string, err error) {
	if s.OnRequest != nil {
		s.OnRequest(path.Base(method), status.Code(err).String())
	}
}

// ListPods implements v1alpha1.PodsServer.
func (s *Server) ListPods(context.Context, *v1alpha1.ListPodsRequest) (*v1alpha1.ListPodsResponse, error) {
	v, err := s.completeView()
	if err != nil {
		return nil, err
	}
	reply := &v1alpha1.ListPodsResponse{}
	for _, p := range sortedPods(v) {
		data, err := marshal(p)
		if err != nil {
			return nil, err
		}
		reply.Pods = append(reply.Pods, data)
	}
	return reply, nil
}

// GetPod implements v1alpha1.PodsServer.
func (s *Server) GetPod(_ context.Context, req *v1alpha1.GetPodRequest) (*v1alpha1.GetPodResponse, error) {
	v, err := s.completeView()
	if err != nil {
		return nil, err
	}
	for _, p := range v.Pods {
		if string(p.Pod.UID) == req.GetPodUID() && p.Pod.UID != "" {
			data, err := marshal(p.Pod)
			return &v1alpha1.GetPodResponse{Pod: data}, err
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod with UID %s not found", req.GetPodUID())
}

// WatchPods implements v1alpha1.PodsServer.
func (s *Server) WatchPods(_ *v1alpha1.WatchPodsRequest, stream v1alpha1.Pods_WatchPodsServer) error {
	v, err := s.completeView()
	if err != nil {
		return err
	}
	w := &watch{stream: stream, sent: map[types.UID]*v1.Pod{}}
	if err := w.sendChanges(v); err != nil {
		return err
	}
	if err := stream.Send(&v1alpha1.WatchPodsEvent{Type: v1alpha1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-s.State.Changed(v.Revision):
			v = s.State.View()
		}
		if err := w.sendChanges(v); err != nil {
			return err
		}
	}
}

// completeView returns the newest View. It returns an error until podd has read all sources and listed
// the pods of the runtime. Before this, pods may be missing that a client would regard as deleted.
func (s *Server) completeView() (*server.View, error) {
	v := s.State.View()
	switch {
	case v.Starting:
		return nil, status.Error(codes.FailedPrecondition, "podd is starting and has not listed the pods of the runtime yet; try again")
	case len(v.UnreadSources) > 0:
		return nil, status.Errorf(codes.FailedPrecondition, "podd has not read %s yet; try again", strings.Join(v.UnreadSources, ", "))
	}
	return v, nil
}

// A watch is a stream of events of one client.
type watch struct {
	stream v1alpha1.Pods_WatchPodsServer
	sent   map[types.UID]*v1.Pod // the pods that the client has received, by UID
}

// sendChanges sends the differences between the pods that the client has received and the pods of v.
func (w *watch) sendChanges(v *server.View) error {
	pods := sortedPods(v)
	exists := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		exists[p.UID] = true
	}
	for _, p := range w.removed(exists) {
		deletedPod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID}}
		if err := w.send(v1alpha1.EventType_DELETED, deletedPod); err != nil {
			return err
		}
		delete(w.sent, p.UID)
	}
	for _, p := range pods {
		kind := v1alpha1.EventType_MODIFIED
		switch w.sent[p.UID] {
		case p:
			continue
		case nil:
			kind = v1alpha1.EventType_ADDED
		}
		if err := w.send(kind, p); err != nil {
			return err
		}
		w.sent[p.UID] = p
	}
	return nil
}

// removed returns the pods in w.sent with a UID that is not in exists, sorted by UID.
func (w *watch) removed(exists map[types.UID]bool) []*v1.Pod {
	var pods []*v1.Pod
	for uid, p := range w.sent {
		if !exists[uid] {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, compareUID)
	return pods
}

// send sends one event about a pod.
func (w *watch) send(kind v1alpha1.EventType, p *v1.Pod) error {
	data, err := marshal(p)
	if err != nil {
		return err
	}
	return w.stream.Send(&v1alpha1.WatchPodsEvent{Type: kind, Pod: data})
}

// sortedPods returns the pods of v, sorted by UID. It omits pods with an unknown UID.
func sortedPods(v *server.View) []*v1.Pod {
	var pods []*v1.Pod
	for _, p := range v.Pods {
		if p.Pod.UID != "" {
			pods = append(pods, p.Pod)
		}
	}
	slices.SortFunc(pods, compareUID)
	return pods
}

func compareUID(a, b *v1.Pod) int { return cmp.Compare(a.UID, b.UID) }

// marshal returns a pod in the protobuf format of k8s.io/api.
func marshal(p *v1.Pod) ([]byte, error) {
	data, err := p.Marshal()
	if err != nil {
		return nil, status.Errorf(codes.Internal, "encoding pod %s/%s: %v", p.Namespace, p.Name, err)
	}
	return data, nil
}
