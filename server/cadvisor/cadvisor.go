// Package cadvisor serves the REST API of cAdvisor, which the kubelet served until Kubernetes 1.11:
//
//	/api/v1.3/machine                the hardware of the node
//	/api/v1.3/containers/CGROUP      a cgroup, with the names of its children
//	/api/v1.3/subcontainers/CGROUP   a cgroup and all cgroups below it
//	/api/v1.3/docker/NAME            no container, because podd does not run containers with Docker
//	/api/v1.3/events/CGROUP          the events of a cgroup; with ?subcontainers=true, also of those below
//	/api/v2.1/machine                as in version 1.3
//	/api/v2.1/attributes             the hardware, with the versions of the kernel and of the operating system
//	/api/v2.1/version                the version of cAdvisor's library in podd
//	/api/v2.1/machinestats           the usage of the node
//	/api/v2.1/storage                the usage of the file systems on disks; ?label=root or ?uuid=UUID selects one
//	/api/v2.1/spec/CGROUP            the limits of a cgroup; with ?recursive=true, also of those below
//	/api/v2.1/stats/CGROUP           the same, with the usage
//	/api/v2.1/summary/CGROUP         the same, with the latest usage of CPU and memory only
//	/api/v2.1/ps/CGROUP              the processes of a cgroup, without arguments; all processes for /
//	/api/v2.1/events/CGROUP          as in version 1.3
//	/api/v2.1/appmetrics             not served, because podd collects no metrics of applications
//
// The cgroups are those of the node, of pods and of their containers. podd keeps no history, so each
// cgroup has one sample of its usage, which is at most a second old. Parameters that select samples
// have no effect. A summary does not contain the percentiles of a minute, an hour and a day, as in
// cAdvisor before the first minute has passed.
//
// A request without a parameter that selects kinds of events returns no events, as in cAdvisor. podd
// reads events when they are requested:
//
//	oom_events        the cgroups that have reached their limit, from the log of the kernel
//	oom_kill_events   the processes that the kernel has killed for this, from the same log
//	creation_events   the creation of the cgroups that exist now
//	deletion_events   not served, because podd does not record when cgroups are deleted
//	all_events        the first three kinds
//
// start_time, end_time and max_events select events, the newest 10 by default. Events are not streamed.
package cadvisor

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/google/cadvisor/lib/model"

	"podd/server"
)

// Meter measures the node. It adds the measurements that only this API shows to those of
// server.Meter. The methods may be called concurrently, and a result is measured when a method is
// called.
type Meter interface {
	server.Meter
	// CPURates returns the CPU usage of cgroups in nanoseconds per second, by the name of the cgroup. It
	// omits the cgroups whose usage is unknown.
	CPURates(ctx context.Context) (map[string]uint64, error)
	// Filesystems returns the file systems on disks. If uuid is not "", it returns only the file system
	// with this UUID, or none. The result is not nil.
	Filesystems(uuid string) ([]model.FsInfo, error)
	// Processes returns the processes in a cgroup of server.Meter.Containers, without those in its children;
	// for "/", it returns all processes of the node. The error of a cgroup that does not exist is
	// fs.ErrNotExist.
	Processes(ctx context.Context, cgroup string) ([]model.ProcessInfo, error)
	// OOMEvents returns the events of the kinds oom and oomKill, in any order.
	OOMEvents() ([]model.Event, error)
}

// Handler returns a handler for GET and POST requests for /api/ and the paths below it. cAdvisor's own
// client uses POST. The handler never reads the body of a request.
func Handler(m Meter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close") // because the body is not read
		}
		version, kindAndCgroup, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
		kind, cgroup, _ := strings.Cut(kindAndCgroup, "/")
		switch query := findQuery(version, kind); {
		case version == "":
			io.WriteString(w, "Supported API versions: v1.3,v2.1\n")
		case query == nil:
			http.Error(w, "podd serves only /api/v1.3/{containers,docker,events,machine,subcontainers} and /api/v2.1/{attributes,events,machine,machinestats,ps,spec,stats,storage,summary,version} of cAdvisor's API", http.StatusNotFound)
		default:
			query.reply(w, r, m, "/"+strings.Trim(cgroup, "/"))
		}
	})
}

// MachineHandler returns a handler that responds with the hardware of the node, as the kubelet did at
// /spec/.
func MachineHandler(m Meter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { query(queryMachine).reply(w, r, m, "/") })
}

// A query returns the response to a request. The caller encodes the response as JSON.
type query func(context.Context, Meter, request) (any, error)

// A request selects a cgroup and, if isRecursive is set, all cgroups below it.
type request struct {
	cgroup      string
	isRecursive bool
	parameters  url.Values
}

// findQuery returns the query for a kind of request in a version of the API, or nil if podd does not
// serve it.
func findQuery(version, kind string) query {
	switch version + "/" + kind {
	case "v1.3/machine", "v2.1/machine":
		return queryMachine
	case "v1.3/containers":
		return queryContainer
	case "v1.3/subcontainers":
		return querySubcontainers
	case "v1.3/docker":
		return queryDocker
	case "v1.3/events", "v2.1/events":
		return queryEvents
	case "v2.1/version":
		return queryVersion
	case "v2.1/attributes":
		return queryAttributes
	case "v2.1/storage":
		return queryStorage
	case "v2.1/summary":
		return querySummary
	case "v2.1/ps":
		return queryProcesses
	case "v2.1/appmetrics":
		return rejectAppMetrics
	case "v2.1/machinestats":
		return queryMachineStats
	case "v2.1/spec":
		return querySpec
	case "v2.1/stats":
		return queryStats
	}
	return nil
}

// reply responds with the result of the query.
func (q query) reply(w http.ResponseWriter, r *http.Request, m Meter, cgroup string) {
	parameters := r.URL.Query()
	if t := parameters.Get("type"); t != "" && t != "name" {
		http.Error(w, "podd finds containers only by the name of their cgroup; remove the parameter type, or use type=name", http.StatusBadRequest)
		return
	}
	result, err := q(r.Context(), m, request{cgroup, parameters.Get("recursive") == "true", parameters})
	if e, ok := err.(*server.Error); ok {
		http.Error(w, e.Message, e.Status)
		return
	}
	if err != nil {
		http.Error(w, "measuring resource usage: "+err.Error(), http.StatusInternalServerError)
		return
	}
	server.Reply(w, http.StatusOK, result)
}

func queryMachine(ctx context.Context, m Meter, _ request) (any, error) { return m.Machine(ctx) }

func queryContainer(ctx context.Context, m Meter, r request) (any, error) {
	r.isRecursive = false // version 1.3 has another kind of request for this
	cgroups, err := queryVersion1(ctx, m, r)
	if err != nil {
		return nil, err
	}
	return cgroups[0], nil
}

func querySubcontainers(ctx context.Context, m Meter, r request) (any, error) {
	r.isRecursive = true
	return queryVersion1(ctx, m, r)
}

// queryDocker responds as cAdvisor does on a host without Docker.
func queryDocker(_ context.Context, _ Meter, r request) (any, error) {
	if r.cgroup != "/" {
		return nil, server.NewNotFoundError("unknown Docker container " + strings.TrimPrefix(r.cgroup, "/"))
	}
	return map[string]*model.ContainerInfo{}, nil
}

// queryVersion1 returns the cgroups of the request in version 1.3 of the API. Without an error, there
// is at least one.
func queryVersion1(ctx context.Context, m Meter, r request) ([]*model.ContainerInfo, error) {
	cgroups, err := m.Containers(ctx)
	if err != nil {
		return nil, err
	}
	selected, err := r.selectCgroups(cgroups)
	if err != nil {
		return nil, err
	}
	children, result := childrenByParent(cgroups), make([]*model.ContainerInfo, 0, len(selected))
	for _, c := range selected {
		result = append(result, withChildren(c, children))
	}
	return result, nil
}

// selectCgroups returns the cgroup of the request and, if the request is recursive, all cgroups below
// it, sorted by name. It returns an error with status 404 if cgroups does not contain the cgroup of
// the request.
func (r request) selectCgroups(cgroups map[string]*model.ContainerInfo) ([]*model.ContainerInfo, error) {
	if cgroups[r.cgroup] == nil {
		return nil, server.NewNotFoundError("unknown container " + r.cgroup)
	}
	if !r.isRecursive {
		return []*model.ContainerInfo{cgroups[r.cgroup]}, nil
	}
	var selected []*model.ContainerInfo
	for _, name := range sortedNames(cgroups) {
		if r.cgroup == "/" || name == r.cgroup || strings.HasPrefix(name, r.cgroup+"/") {
			selected = append(selected, cgroups[name])
		}
	}
	return selected, nil
}

// withChildren returns a copy of c with the references to its children.
func withChildren(c *model.ContainerInfo, children map[string][]model.ContainerReference) *model.ContainerInfo {
	v := *c // a copy, because the Meter shares its results
	v.Subcontainers = children[c.Name]
	return &v
}

// childrenByParent returns the references to the children of each cgroup, sorted by name. The parent
// of a cgroup is the nearest measured cgroup above it.
func childrenByParent(cgroups map[string]*model.ContainerInfo) map[string][]model.ContainerReference {
	children := map[string][]model.ContainerReference{}
	for _, name := range sortedNames(cgroups) {
		for parent := name; parent != "/" && parent != "."; {
			if parent = path.Dir(parent); cgroups[parent] != nil {
				children[parent] = append(children[parent], model.ContainerReference{Name: name})
				break
			}
		}
	}
	return children
}

func sortedNames(cgroups map[string]*model.ContainerInfo) []string {
	names := make([]string, 0, len(cgroups))
	for name := range cgroups {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
