//go:build e2e

package stack_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// BenchmarkBarePod measures the cost of a pod with one container when it is created by bare CRI
// calls, in total and by call. This is the lower bound for any CRI client.
func BenchmarkBarePod(b *testing.B) {
	for _, flavor := range tools.Flavors() {
		b.Run(string(flavor), func(b *testing.B) {
			s := stack.ForTest(b, stack.Options{Flavor: flavor})
			took := map[string]time.Duration{}
			client := connect(b, s, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption) error {
				begin := time.Now()
				defer func() { took[method] += time.Since(begin) }()
				return next(ctx, method, request, reply, conn, options...)
			}))
			for i := 0; b.Loop(); i++ {
				pod := runPod(b, client, fmt.Sprintf("web-%d", i), stack.WebImage)
				b.StopTimer()
				pod.remove(b, client)
				b.StartTimer()
			}
			for _, call := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "StopPodSandbox", "RemovePodSandbox"} {
				total := took["/runtime.v1.RuntimeService/"+call]
				b.ReportMetric(float64(total.Milliseconds())/float64(b.N), call+"-ms/op")
			}
		})
	}
}
