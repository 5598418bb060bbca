package cri

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Reasons why podd does not call an RPC. The feature gates are those of the kubelet.
const (
	statsReason    = "needs the gate PodAndContainerStatsFromCRI, which is off by default; package runtime/stats measures pods"
	streamReason   = "needs the gate CRIListStreaming, which is alpha and off by default"
	noCallerReason = "the kubelet has no caller of it"
	called         = "" // podd calls the RPC
)

// rpcVerdicts contains every RPC of CRI by service, and the reason why podd does not call it. The reason
// is called, which is "", if podd calls the RPC.
var rpcVerdicts = map[*grpc.ServiceDesc]map[string]string{
	&api.RuntimeService_ServiceDesc: {
		// Sandboxes.
		"RunPodSandbox":             called,
		"StopPodSandbox":            called,
		"RemovePodSandbox":          called,
		"PodSandboxStatus":          called,
		"ListPodSandbox":            called,
		"StreamPodSandboxes":        streamReason,
		"UpdatePodSandboxResources": called,
		"PortForward":               called,
		"CheckpointPod":             noCallerReason,
		"RestorePod":                noCallerReason,
		// Containers.
		"CreateContainer":          called,
		"StartContainer":           called,
		"StopContainer":            called,
		"RemoveContainer":          called,
		"ContainerStatus":          called,
		"ListContainers":           called,
		"StreamContainers":         streamReason,
		"GetContainerEvents":       called,
		"UpdateContainerResources": called,
		"ReopenContainerLog":       called,
		"ExecSync":                 called,
		"Exec":                     called,
		"Attach":                   called,
		"CheckpointContainer":      called,
		// Usage.
		"ContainerStats":          called,
		"ListContainerStats":      called,
		"StreamContainerStats":    streamReason,
		"PodSandboxStats":         statsReason,
		"ListPodSandboxStats":     statsReason,
		"StreamPodSandboxStats":   statsReason,
		"ListMetricDescriptors":   statsReason,
		"ListPodSandboxMetrics":   statsReason,
		"StreamPodSandboxMetrics": statsReason,
		// The runtime.
		"Version":             called,
		"Status":              called,
		"RuntimeConfig":       called,
		"UpdateRuntimeConfig": called,
	},
	&api.ImageService_ServiceDesc: {
		"PullImage":    called,
		"RemoveImage":  called,
		"ImageStatus":  called,
		"ListImages":   called,
		"StreamImages": streamReason,
		"ImageFsInfo":  called,
	},
}

// TestRPCs checks that rpcVerdicts contains exactly the RPCs of this version of CRI, so that a new RPC
// is noticed, and that this package calls those without a reason and no others.
func TestRPCs(t *testing.T) {
	calls := rpcCalls(t)
	for service, verdicts := range rpcVerdicts {
		var names []string
		for _, m := range service.Methods {
			names = append(names, m.MethodName)
		}
		for _, s := range service.Streams {
			names = append(names, s.StreamName)
		}
		for _, name := range names {
			reason, ok := verdicts[name]
			if isCalled := calls[name]; !ok {
				t.Errorf("%s: got the RPC %s without a verdict; find out when the kubelet calls it, and add it to rpcVerdicts", service.ServiceName, name)
			} else if isCalled != (reason == "") {
				t.Errorf("%s: RPC %s: got called %t, want %t (reason %q)", service.ServiceName, name, isCalled, reason == "", reason)
			}
			delete(calls, name)
		}
		for name := range verdicts {
			if !slices.Contains(names, name) {
				t.Errorf("%s: got a verdict about %s, want called, because the service has no such RPC", service.ServiceName, name)
			}
		}
	}
	if len(calls) > 0 {
		t.Errorf("calls of unknown RPCs: got %v, want called", slices.Sorted(maps.Keys(calls)))
	}
}

// rpcCalls returns the names of the RPCs that this package calls. It finds methods of the fields runtime
// and images of a Client, and the constants with the full names of methods.
func rpcCalls(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	collect := func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if name := calledRPC(s); name != "" {
				calls[name] = true
			}
		}
		return true
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, collect)
	}
	return calls
}

// calledRPC returns the name of the RPC that an expression like c.runtime.Version or
// api.RuntimeService_Version_FullMethodName names; "" if there is called.
func calledRPC(s *ast.SelectorExpr) string {
	if constant, ok := strings.CutSuffix(s.Sel.Name, "_FullMethodName"); ok {
		_, name, _ := strings.Cut(constant, "_")
		return name
	}
	if field, ok := s.X.(*ast.SelectorExpr); ok && (field.Sel.Name == "runtime" || field.Sel.Name == "images") {
		return s.Sel.Name
	}
	return ""
}
