package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"
)

// many is the number of pods on a node of a cluster.
const many = 100

// inCluster measures the cost of being a node of a cluster.
func (b *bench) inCluster(ctx context.Context) error {
	for _, n := range []int{1, many} {
		alone, err := b.alone(ctx, n)
		if err != nil {
			return err
		}
		if err := b.member(ctx, n, alone); err != nil {
			return err
		}
	}
	return nil
}

// alone measures podd with n pods from files and the objects that they use.
func (b *bench) alone(ctx context.Context, n int) (i idle, err error) {
	if err := b.daemon.begin(ctx); err != nil {
		return i, err
	}
	pods := b.pods(n)
	for j := range pods {
		if pods[j].text, err = pods[j].withFiles(); err != nil {
			return i, err
		}
	}
	if _, _, err := b.apply(ctx, pods); err != nil {
		return i, err
	}
	if i, err = b.idle(ctx, b.daemon.cmd.Process.Pid); err != nil {
		return i, err
	}
	if err := b.withdraw(ctx, pods); err != nil {
		return i, err
	}
	return i, b.daemon.end()
}

// bound measures the time from the binding of a pod until its process runs.
func (b *bench) bound(ctx context.Context) error {
	c, err := b.join(ctx)
	if err != nil {
		return err
	}
	r := row{name: "one pod, bound -> runs", unit: seconds, goal: goal{factor: 1.3}}
	for range b.Singles {
		took, err := b.oneBare(ctx)
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if err := c.begin(ctx); err != nil {
			return err
		}
		pods := b.pods(1)
		began, at, err := c.apply(ctx, nodeName, pods)
		if err != nil {
			return err
		}
		r.podd = append(r.podd, at.Sub(began).Seconds())
		if err := c.withdraw(ctx, pods); err != nil {
			return err
		}
		if err := b.daemon.end(); err != nil {
			return err
		}
	}
	b.table.add(r)
	return b.leave()
}

// member measures podd with n pods of the cluster and compares it with alone.
func (b *bench) member(ctx context.Context, n int, alone idle) error {
	c, err := b.join(ctx)
	if err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	own := b.pods(n)
	if _, _, err := c.apply(ctx, nodeName, own); err != nil {
		return err
	}
	i, err := b.idle(ctx, b.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	of := pods(n) + ", from files and a cluster"
	b.table.add(row{name: "RSS, " + of, unit: megabytes, bare: samples{alone.resident}, podd: samples{i.resident}, goal: goal{factor: 1, plus: 15e6}})
	b.table.add(row{name: "RssAnon, " + of, unit: megabytes, bare: samples{alone.anonymous}, podd: samples{i.anonymous}})
	b.table.add(row{name: "idle CPU, " + of, unit: percent, bare: samples{alone.cpu}, podd: samples{i.cpu}, goal: goal{plus: 0.8}})
	if err := b.withKubelet(ctx, c, n); err != nil {
		return err
	}
	if err := c.withdraw(ctx, own); err != nil {
		return err
	}
	return b.leave()
}

// withKubelet compares podd and a kubelet, which each have n pods and are idle: their memory and,
// with many pods, their requests.
func (b *bench) withKubelet(ctx context.Context, c *cluster, n int) (err error) {
	k, err := newKubelet(ctx, filepath.Join(b.dir, "k"), c)
	if err != nil {
		return err
	}
	defer func() {
		if ended := k.close(); err == nil {
			err = ended
		}
	}()
	if _, _, err := c.apply(ctx, k.name, b.pods(n)); err != nil {
		return err
	}
	if err := rest(ctx, time.Minute); err != nil { // until statuses, images and events have been sent
		return err
	}
	if n == many && b.Traffic > 0 {
		if err := b.traffic(ctx, c, k); err != nil {
			return err
		}
	}
	theirs, err := b.idle(ctx, k.cmd.Process.Pid)
	if err != nil {
		return err
	}
	own, err := b.idle(ctx, b.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		name         string
		theirs, podd float64
	}{{"RssAnon", theirs.anonymous, own.anonymous}, {"RSS", theirs.resident, own.resident}, {"peak RSS", theirs.peak, own.peak}} {
		b.table.add(row{name: r.name + ", " + pods(n) + " of a cluster, kubelet and podd", unit: megabytes, bare: samples{r.theirs}, podd: samples{r.podd}})
	}
	return nil
}

// traffic counts the requests of podd and of the kubelet k, which each have many pods.
func (b *bench) traffic(ctx context.Context, c *cluster, k *kubeletNode) error {
	began, used, ours := time.Now(), cpuSince(k.cmd.Process.Pid), cpuSince(b.daemon.cmd.Process.Pid)
	progress("traffic", "counting for "+b.Traffic.String())
	if err := rest(ctx, b.Traffic); err != nil {
		return err
	}
	// The other requests depend on features that this host does not have for a kubelet.
	r := row{name: "requests except events, 100 pods, kubelet and podd", unit: perMinute, goal: goal{factor: 1}}
	minutes := time.Since(began).Minutes()
	for _, side := range []struct {
		node string
		to   *samples
	}{{k.name, &r.bare}, {nodeName, &r.podd}} {
		requests, err := c.plane.RequestCounts(side.node, began)
		if err != nil {
			return err
		}
		calls, total := map[string]float64{}, 0.0
		for what, n := range requests {
			calls[what] = float64(n)
			if !strings.HasSuffix(what, " events") {
				total += float64(n)
			}
		}
		*side.to = samples{total / minutes}
		b.table.notes = append(b.table.notes, "requests per minute, "+side.node+": "+list(calls, minutes))
	}
	b.table.add(r)
	share := 100 / (60 * minutes)
	b.table.add(row{name: "CPU meanwhile, kubelet and podd", unit: percent, bare: samples{used() * share}, podd: samples{ours() * share}})
	return nil
}
