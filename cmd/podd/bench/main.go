// Command bench measures podd beside the floor: the same pods, made by bare
// CRI calls with the configs that podd would send. `make bench` runs it.
//
//	            ┌─ podd: manifests written, removed ─┐
//	round ──────┤                                    ├──▶ one private containerd
//	            └─ floor: CRI calls, n side by side ─┘         │
//	table ◀── times ◀── witness: a FIFO that every container writes to,
//	                    inotify on containerd's task directories
//
// Both sides are seen by the same means, which cost neither of them anything
// to speak of: the first thing a container's process does is to write its name
// into a FIFO of the bench, and a task is gone when containerd has removed its
// directory. Nothing polls while a clock runs.
//
// Rounds of podd and of the floor take turns, so that what else the machine
// does hits both alike; podd does not run during a round of the floor, whose
// events it would read. The floor of many pods is that of the fastest of
// several widths, found in the first round.
//
// In parts bound and cluster podd is the node of one, of a real etcd and kube-apiserver;
// the clock of a pod runs from before its binding is sent to the API server until its
// process runs. Memory and processor are beside those of a podd that has the same
// pods from files, traffic beside that of a kubelet with as many pods on a containerd
// of its own, at the same time, as the API server's audit log counts it. Nothing passes or fails by time:
// a goal that is missed is marked.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

// options are the flags.
type options struct {
	Podd    string        `help:"The podd to measure; built when not given." placeholder:"FILE"`
	Sizes   []int         `default:"20,100" help:"Pods of the bursts."`
	Rounds  int           `default:"3" help:"Rounds of each burst."`
	Singles int           `default:"9" help:"Rounds of what one pod does."`
	Widths  []int         `default:"2,4,8,16" help:"How many bare calls are made side by side."`
	Idle    time.Duration `default:"30s" help:"How long an idle podd is watched."`
	Load    time.Duration `default:"20s" help:"How long each face is asked for more than it can answer."`
	Traffic time.Duration `default:"10m" help:"How long requests to an API server are counted; a kubelet's watches last for 5 to 10 minutes."`
	Only    []string      `help:"Parts to measure: one, restart, start, burst, idle, faces, bound, cluster; all when not given." enum:"one,restart,start,burst,idle,faces,bound,cluster"`
	Keep    string        `help:"Directory to work in, kept with podd's log." placeholder:"DIR"`
	Flags   []string      `sep:"none" name:"flag" help:"A flag for podd, such as --flag=--v=4; repeatable."`
}

func (o *options) wants(part string) bool {
	for _, p := range o.Only {
		if p == part {
			return true
		}
	}
	return len(o.Only) == 0
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("bench"), kong.Description("Measure podd beside bare CRI calls."))
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// run measures all parts and prints the table, of what there is when a part
// fails.
func run(ctx context.Context, o options) (err error) {
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if closed := b.close(); err == nil {
			err = closed
		}
	}()
	for _, part := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"one", b.one}, {"restart", b.restart}, {"start", b.start}, {"idle", b.idleOne}, {"burst", b.bursts}, {"faces", b.facesOn}, {"bound", b.bound}, {"cluster", b.inCluster},
	} {
		if !o.wants(part.name) {
			continue
		}
		if err = part.measure(ctx); err != nil {
			err = fmt.Errorf("measuring %s: %w", part.name, err)
			break
		}
	}
	b.table.print(os.Stdout)
	return err
}
