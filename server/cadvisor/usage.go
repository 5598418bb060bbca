package cadvisor

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"

	"github.com/google/cadvisor/lib/model"

	"podd/server"
)

// querySummary returns the latest usage of the cgroups of the request whose CPU usage is known.
func querySummary(ctx context.Context, m Meter, r request) (any, error) {
	rates, err := m.CPURates(ctx)
	if err != nil {
		return nil, err
	}
	summaries := map[string]model.DerivedStats{}
	err = eachCgroup(ctx, m, r, func(c *model.ContainerInfo) {
		rate, hasRate := rates[c.Name]
		for _, s := range c.Stats {
			if hasRate && s.Memory != nil {
				usage := model.InstantUsage{Cpu: rate / 1e6, Memory: s.Memory.WorkingSet}
				summaries[c.Name] = model.DerivedStats{Timestamp: s.Timestamp, LatestUsage: usage}
			}
		}
	})
	if err == nil && len(summaries) == 0 {
		return nil, &server.Error{Status: http.StatusServiceUnavailable, Message: "the CPU usage of " + r.cgroup + " is not known yet; repeat the request after a second"}
	}
	return summaries, err
}

func queryStorage(_ context.Context, m Meter, r request) (any, error) {
	uuid, label := r.parameters.Get("uuid"), r.parameters.Get("label")
	filesystems, err := m.Filesystems(uuid)
	switch {
	case err != nil:
		return nil, err
	case uuid != "" && len(filesystems) == 0:
		return nil, server.NewNotFoundError("unknown file system with UUID " + uuid)
	case uuid != "":
		return filesystems[0], nil // not a list, as in cAdvisor
	case label == "":
		return filesystems, nil
	}
	var selected []*model.FsInfo
	for i := range filesystems {
		if slices.Contains(filesystems[i].Labels, label) {
			selected = append(selected, &filesystems[i])
		}
	}
	if len(selected) == 0 {
		return nil, server.NewNotFoundError("unknown file system label " + label + "; podd labels only the file system at / (label=root)")
	}
	return selected, nil
}

func queryProcesses(ctx context.Context, m Meter, r request) (any, error) {
	cgroups, err := m.Containers(ctx)
	if err != nil {
		return nil, err
	}
	r.isRecursive = false
	if _, err := r.selectCgroups(cgroups); err != nil {
		return nil, err
	}
	processes, err := m.Processes(ctx, r.cgroup)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, server.NewNotFoundError("container " + r.cgroup + " has no cgroup on the host")
	}
	return processes, err
}

func rejectAppMetrics(context.Context, Meter, request) (any, error) {
	return nil, server.NewNotFoundError("podd does not serve appmetrics, because it collects no metrics of applications; request them from the applications")
}
