package csidriver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A service implements the gRPC services of a driver, in the driver's process.
type service struct {
	*Driver
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnsafeRegistrationServer

	mu         sync.Mutex // guards all following fields
	calls      *os.File
	inProgress map[string]int // calls in progress, by volume
}

func (d *Driver) serve() error {
	if err := os.MkdirAll(filepath.Join(d.Dir, "volumes"), 0o750); err != nil {
		return err
	}
	s := &service{Driver: d, inProgress: map[string]int{}}
	var err error
	if s.calls, err = os.OpenFile(filepath.Join(d.Dir, "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	csi.RegisterIdentityServer(server, s)
	csi.RegisterNodeServer(server, s)
	registration.RegisterRegistrationServer(server, s)
	ended := make(chan error)
	for _, socket := range []string{d.Endpoint(), d.registrationSocket()} {
		if err := ignoreNotExist(os.Remove(socket)); err != nil {
			return err
		}
		ln, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		go func() { ended <- server.Serve(ln) }()
	}
	ready := os.NewFile(readyDescriptor, "serving")
	if _, err := ready.Write([]byte{'\n'}); err != nil {
		return err
	}
	if err := ready.Close(); err != nil {
		return err
	}
	return <-ended
}

func (s *service) recordCall(c Call) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.calls.Write(append(text, '\n'))
	return err
}

// intercept records every call and applies the behavior that Driver.SetBehavior has set for its
// method.
func (s *service) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	text, err := protojson.Marshal(request.(proto.Message))
	if err != nil {
		return nil, err
	}
	volume := ""
	if of, ok := request.(interface{ GetVolumeId() string }); ok {
		volume = of.GetVolumeId()
	}
	s.mu.Lock()
	overlaps := volume != "" && method != "NodeGetVolumeStats" && s.inProgress[volume] > 0
	s.inProgress[volume]++
	s.mu.Unlock()
	if err := s.recordCall(Call{Event: CallBegun, Method: method, Request: text, Volume: volume, Overlaps: overlaps}); err != nil {
		return nil, err
	}
	response, err := s.applyBehavior(ctx, method, func() (any, error) { return handle(ctx, request) })
	s.mu.Lock()
	s.inProgress[volume]--
	s.mu.Unlock()
	return response, cmp.Or(err, s.recordCall(Call{Event: CallEnded, Method: method, Code: status.Code(err).String(), Volume: volume}))
}

// applyBehavior applies the behavior of method to a call. To perform the call, it calls the
// function do.
func (s *service) applyBehavior(ctx context.Context, method string, do func() (any, error)) (any, error) {
	path := filepath.Join(s.Dir, "control", method)
	text, err := os.ReadFile(path)
	if err != nil {
		return do()
	}
	behavior := string(text)
	if behavior == "hang" || behavior == "late" {
		var response any
		if behavior == "late" {
			if response, err = do(); err != nil {
				return nil, err
			}
		}
		for ctx.Err() == nil {
			if now, err := os.ReadFile(path); err != nil || string(now) != behavior {
				if behavior == "late" {
					return response, nil
				}
				return do()
			}
			time.Sleep(5 * time.Millisecond)
		}
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if once, ok := strings.CutPrefix(behavior, "once "); ok {
		behavior = once
		switch err := os.Remove(path); {
		case errors.Is(err, fs.ErrNotExist): // a concurrent call has removed the file and fails
			return do()
		case err != nil:
			return nil, err
		}
	}
	name, message, _ := strings.Cut(behavior, " ")
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if c.String() == name {
			return nil, status.Error(c, message)
		}
	}
	return nil, status.Errorf(codes.Unknown, "unknown behavior %[2]q of method %[1]s", method, behavior)
}

// GetInfo implements the plugin registration service.
func (s *service) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	versions := s.Versions
	if versions == nil {
		versions = []string{"1.0.0"}
	}
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: s.Name, Endpoint: s.Endpoint(), SupportedVersions: versions}, nil
}

// NotifyRegistrationStatus implements the plugin registration service.
func (s *service) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo implements the identity service.
func (s *service) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.Name, VendorVersion: "1"}, nil
}

// GetPluginCapabilities implements the identity service.
func (s *service) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// Probe implements the identity service.
func (s *service) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// NodeGetInfo implements the node service.
func (s *service) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	r := &csi.NodeGetInfoResponse{NodeId: cmp.Or(s.NodeID, "node-of-"+s.Name), MaxVolumesPerNode: s.MaxVolumes}
	if text, err := os.ReadFile(s.controlFile(maxVolumesFile)); err == nil {
		if r.MaxVolumesPerNode, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return nil, err
		}
	}
	if s.Topology != nil {
		r.AccessibleTopology = &csi.Topology{Segments: s.Topology}
	}
	return r, nil
}

// NodeGetCapabilities implements the node service.
func (s *service) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	r := &csi.NodeGetCapabilitiesResponse{}
	for _, name := range s.Capabilities {
		kind := csi.NodeServiceCapability_RPC_Type(csi.NodeServiceCapability_RPC_Type_value[name])
		r.Capabilities = append(r.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}},
		})
	}
	return r, nil
}
