package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// Flags are the flags of podd run, with the kubelet's names where it has one.
// A nil pointer or slice was not given. The tag "field" names the v1beta1 field
// a flag stands for; the others are podd's own or have no field. The remaining
// tags are kong's.
type Flags struct {
	PodManifestPath       []string       `group:"Sources" sep:"none" placeholder:"PATH" help:"Directory or file with manifests; repeatable."`
	ManifestURL           []string       `group:"Sources" name:"manifest-url" sep:"none" placeholder:"URL" help:"URL with manifests, {node} and {machineID} are replaced; repeatable."`
	ManifestURLHeader     []string       `group:"Sources" name:"manifest-url-header" sep:"none" placeholder:"NAME:VALUE" help:"Header for every manifest URL; visible in ps, prefer the file."`
	ManifestURLHeaderFile string         `group:"Sources" name:"manifest-url-header-file" placeholder:"FILE" help:"Headers for every manifest URL, one \"Name: value\" a line."`
	ManifestURLCA         string         `group:"Sources" name:"manifest-url-ca" placeholder:"FILE" help:"CA certificates for manifest URLs instead of the system's."`
	ManifestURLCert       string         `group:"Sources" name:"manifest-url-cert" placeholder:"FILE" help:"Client certificate for manifest URLs."`
	ManifestURLKey        string         `group:"Sources" name:"manifest-url-key" placeholder:"FILE" help:"Key of that certificate."`
	APIManifestDir        string         `group:"Sources" name:"api-manifest-dir" placeholder:"DIR" help:"Directory that kubectl apply, create, edit and delete write to, podd's alone and of mode 0700; without, and for pods of other files, they are refused. None in a cluster."`
	FileCheckFrequency    *time.Duration `group:"Sources" field:"fileCheckFrequency" placeholder:"20s" help:"How often files are looked at again beside watching them."`
	HTTPCheckFrequency    *time.Duration `group:"Sources" name:"http-check-frequency" field:"httpCheckFrequency" placeholder:"20s" help:"How often manifest URLs are asked."`
	SyncFrequency         *time.Duration `group:"Sources" field:"syncFrequency" placeholder:"1m" help:"How often every pod is looked at anew at least."`
	Strict                bool           `group:"Sources" help:"Refuse manifests with unknown or repeated fields instead of warning."`

	Config              string   `group:"Node" placeholder:"FILE" help:"KubeletConfiguration (kubelet.config.k8s.io/v1beta1); flags win."`
	ConfigDir           string   `group:"Node" placeholder:"DIR" help:"Drop-ins (*.conf) merged over the configuration."`
	HostnameOverride    string   `group:"Node" placeholder:"NAME" help:"Name of the node instead of the hostname."`
	CloudMetadata       string   `group:"Node" placeholder:"CLOUD" help:"Ask the metadata service of openstack, ec2 or gce for the node's name, zone, region, instance type and provider id; flags that are given win, and pods wait for the answer."`
	NodeIP              string   `group:"Node" name:"node-ip" placeholder:"IP[,IP]" help:"Address of the node, or one of each family, the primary first; found when not given."`
	NodeLabels          []string `group:"Node" placeholder:"NAME=VALUE" help:"Labels of the node, for nodeSelector and nodeAffinity."`
	RootDir             string   `group:"Node" placeholder:"DIR" help:"State and volumes (/var/lib/podd; in a cluster /var/lib/kubelet); two podds need two."`
	RunDir              string   `group:"Node" placeholder:"DIR" help:"Control socket (/run/podd)."`
	PodLogsDir          *string  `group:"Node" field:"podLogsDir" placeholder:"DIR" help:"Logs of the pods (/var/log/pods)."`
	MaxPods             *int32   `group:"Node" field:"maxPods" placeholder:"110" help:"Pods that run at once."`
	NodeStatusMaxImages *int32   `group:"Node" field:"nodeStatusMaxImages" placeholder:"50" help:"Images that the node's status lists; -1 for all."`
	Adopt               *bool    `group:"Node" help:"End pods of others that hold a wanted pod's name, as of a stopped kubelet, after their grace; podd help down tells the way back."`
	RunOnce             *bool    `group:"Node" name:"runonce" field:"runOnce" help:"Run the pods once, to completion, and exit with their code."`

	ContainerRuntimeEndpoint *string        `group:"Runtime" field:"containerRuntimeEndpoint" placeholder:"SOCKET" help:"CRI socket; containerd's and CRI-O's are found."`
	ImageServiceEndpoint     *string        `group:"Runtime" field:"imageServiceEndpoint" placeholder:"SOCKET" help:"CRI socket for images, if another."`
	RuntimeRequestTimeout    *time.Duration `group:"Runtime" field:"runtimeRequestTimeout" placeholder:"2m" help:"Limit for each call of the runtime."`
	CgroupDriver             *string        `group:"Runtime" field:"cgroupDriver" placeholder:"cgroupfs" help:"cgroupfs or systemd, where the runtime does not say."`
	CgroupRoot               *string        `group:"Runtime" field:"cgroupRoot" placeholder:"CGROUP" help:"Cgroup to put pods under."`
	SeccompDefault           *bool          `group:"Runtime" field:"seccompDefault" help:"Use the runtime's seccomp profile where none is named."`
	RuntimeClass             []string       `group:"Runtime" placeholder:"CLASS=HANDLER" help:"The runtime's handler for pods of a class; without, the one of the same name."`
	AllowedUnsafeSysctls     []string       `group:"Runtime" field:"allowedUnsafeSysctls" placeholder:"NAME" help:"Sysctls that pods may set beside the safe ones; a name may end in *."`
	PodMaxPids               *int64         `group:"Runtime" field:"podPidsLimit" placeholder:"-1" help:"Processes in one pod; -1 is no limit."`
	PodInfraContainerImage   string         `group:"Runtime" placeholder:"IMAGE" help:"Sandbox image that is never collected."`
	ParallelStarts           int            `group:"Runtime" placeholder:"N" help:"Pods being started at once; 0 lets podd choose."`
	ContainerLogMaxSize      *string        `group:"Runtime" field:"containerLogMaxSize" placeholder:"10Mi" help:"Size at which a log file is put aside; -1 for none."`
	ContainerLogMaxFiles     *int32         `group:"Runtime" field:"containerLogMaxFiles" placeholder:"5" help:"Log files kept of a container."`
	FailSwapOn               *bool          `group:"Runtime" hidden:"" field:"failSwapOn"`
	FailCgroupV1             *bool          `group:"Runtime" hidden:"" name:"fail-cgroupv1" field:"failCgroupV1"`

	SerializeImagePulls           *bool       `group:"Images" field:"serializeImagePulls" help:"Pull one image at a time."`
	MaxParallelImagePulls         *int32      `group:"Images" field:"maxParallelImagePulls" placeholder:"5" help:"Images being pulled at once."`
	RegistryQPS                   *int32      `group:"Images" name:"registry-qps" field:"registryPullQPS" placeholder:"5" help:"Pulls a second; 0 for no limit."`
	RegistryBurst                 *int32      `group:"Images" field:"registryBurst" placeholder:"10" help:"Pulls at once above that rate."`
	PullOffline                   PullOffline `group:"Images" enum:"strict,use-present" default:"strict" help:"What policy Always does when no registry answers: strict waits, use-present starts the image that is there."`
	ImageCredentialProviderConfig string      `group:"Images" placeholder:"PATH" help:"CredentialProviderConfig, or a directory of them, of plugins that know registries' credentials."`
	ImageCredentialProviderBinDir string      `group:"Images" placeholder:"DIR" help:"Directory with those plugins' programs."`

	Kubeconfig                string         `group:"Cluster" placeholder:"FILE" help:"Kubeconfig by which this machine is a node of a cluster."`
	BootstrapKubeconfig       string         `group:"Cluster" placeholder:"FILE" help:"Kubeconfig by which to ask the cluster for a certificate, and write --kubeconfig, when that gives none that is good."`
	CertDir                   string         `group:"Cluster" placeholder:"DIR" help:"Certificates that the cluster gave (pki in the root directory)."`
	RotateCertificates        *bool          `group:"Cluster" field:"rotateCertificates" help:"Ask the cluster for the next client certificate before the last is over."`
	RotateServerCertificates  *bool          `group:"Cluster" field:"serverTLSBootstrap" help:"Have the cluster give the certificate that the kubelet's API shows."`
	RegisterNode              *bool          `group:"Cluster" field:"registerNode" help:"Make the node in the cluster; on unless =false."`
	RegisterWithTaints        []string       `group:"Cluster" placeholder:"KEY=VALUE:EFFECT" help:"Taints that the node is made with; repeatable."`
	ProviderID                *string        `group:"Cluster" name:"provider-id" field:"providerID" placeholder:"ID" help:"What the cloud calls this machine."`
	CloudProvider             string         `group:"Cluster" placeholder:"external" help:"external has a cloud controller tell the node's addresses."`
	NodeStatusUpdateFrequency *time.Duration `group:"Cluster" field:"nodeStatusUpdateFrequency" placeholder:"10s" help:"How often the cluster's status is compared with the machine's."`
	KubeAPIQPS                *int32         `group:"Cluster" name:"kube-api-qps" field:"kubeAPIQPS" placeholder:"50" help:"Requests of the cluster's API a second."`
	KubeAPIBurst              *int32         `group:"Cluster" name:"kube-api-burst" field:"kubeAPIBurst" placeholder:"100" help:"Requests at once above that rate."`
	KubeAPIContentType        *string        `group:"Cluster" name:"kube-api-content-type" field:"contentType" placeholder:"TYPE" help:"Media type of those requests (application/vnd.kubernetes.protobuf)."`

	ClusterDNS    []string `group:"DNS" name:"cluster-dns" field:"clusterDNS" placeholder:"IP" help:"Name servers of pods; repeatable."`
	ClusterDomain *string  `group:"DNS" field:"clusterDomain" placeholder:"DOMAIN" help:"Domain that pods search."`
	ResolvConf    *string  `group:"DNS" field:"resolvConf" placeholder:"FILE" help:"What the pods' DNS is made from (/etc/resolv.conf)."`

	Port                    *int32   `group:"Kubelet API" field:"port" placeholder:"10250" help:"Port of the kubelet's API, and of kubectl's; 0 is off."`
	Address                 *string  `group:"Kubelet API" field:"address" placeholder:"IP" help:"Address of the kubelet's API and of /pods; 127.0.0.1 unless clients have credentials of their own or a cluster's."`
	EnableServer            *bool    `group:"Kubelet API" field:"enableServer" help:"Serve it; --enable-server=false does not."`
	TLSCertFile             *string  `group:"Kubelet API" name:"tls-cert-file" field:"tlsCertFile" placeholder:"FILE" help:"Certificate to show; podd's own when not given."`
	TLSPrivateKeyFile       *string  `group:"Kubelet API" name:"tls-private-key-file" field:"tlsPrivateKeyFile" placeholder:"FILE" help:"Key of that certificate."`
	TLSMinVersion           *string  `group:"Kubelet API" name:"tls-min-version" field:"tlsMinVersion" placeholder:"VersionTLS12" help:"Oldest version of TLS to speak."`
	TLSCipherSuites         []string `group:"Kubelet API" name:"tls-cipher-suites" field:"tlsCipherSuites" placeholder:"NAME" help:"Ciphers of TLS 1.2 to allow; Go's when not given."`
	ClientCAFile            *string  `group:"Kubelet API" name:"client-ca-file" field:"authentication.x509.clientCAFile" placeholder:"FILE" help:"CA certificates that vouch for clients."`
	TokenAuthFile           string   `group:"Kubelet API" placeholder:"FILE" help:"Bearer tokens, a line of token,user,uid,\"group,group\" each."`
	AuthorizationPolicyFile string   `group:"Kubelet API" placeholder:"FILE" help:"ClusterRoles and ClusterRoleBindings that say what clients may."`
	AuthorizationMode       *string  `group:"Kubelet API" field:"authorization.mode" placeholder:"MODE" help:"Webhook asks the cluster, AlwaysAllow lets every known client do everything."`
	AnonymousAuth           *bool    `group:"Kubelet API" field:"authentication.anonymous.enabled" help:"Know clients that show nothing as system:anonymous."`
	EnableDebuggingHandlers *bool    `group:"Kubelet API" field:"enableDebuggingHandlers" help:"Serve logs, exec, attach and port-forward there; on unless =false."`

	HealthzPort        *int32  `group:"Health and logs" field:"healthzPort" placeholder:"10248" help:"Port of /healthz; 0 is off."`
	HealthzBindAddress *string `group:"Health and logs" field:"healthzBindAddress" placeholder:"127.0.0.1" help:"Address of /healthz."`
	ReadOnlyPort       *int32  `group:"Health and logs" field:"readOnlyPort" placeholder:"0" help:"Port of /pods, metrics and the page, for all to read, without logs; 0 is off."`
	CadvisorPort       int32   `group:"Health and logs" placeholder:"0" help:"Port of cAdvisor's /metrics, and of the page, on 127.0.0.1; 0 is off."`
	EventLog           string  `group:"Health and logs" placeholder:"FILE" help:"Append what happens to pods to a file, a line of JSON for each event."`
	LoggingFormat      *string `group:"Health and logs" field:"logging.format" placeholder:"text" help:"text or json."`
	Verbosity          *uint32 `group:"Health and logs" name:"v" short:"v" field:"logging.verbosity" placeholder:"0" help:"How much to log; 4 is for debugging."`

	// Known are the kubelet's flags that were given and have no place above;
	// Args finds them.
	Known []Known `kong:"-"`
}

// layer is the command line as the last, strongest layer.
func (f *Flags) layer() *layer {
	l := &layer{tree: map[string]any{}, flag: map[string]string{}}
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		path, ok := tag.Lookup("field")
		if !ok || v.Field(i).IsZero() {
			continue
		}
		l.set(path, "--"+flagName(v.Type().Field(i)), plain(v.Field(i)))
	}
	for _, k := range f.Known {
		if k.value != nil {
			l.set(k.field, "--"+k.Name, k.value)
		}
	}
	return l
}

// checkedLayer is layer without values that do not fit their fields, such as
// numbers too large; those are errors.
func (f *Flags) checkedLayer() (*layer, []manifest.Problem) {
	t := typing{layer: f.layer()}
	t.object(t.layer.tree, reflect.TypeFor[kubelet.KubeletConfiguration](), "")
	return t.layer, t.problems
}

// plain is v as JSON would hold it.
func plain(v reflect.Value) any {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case []string:
		list := make([]any, len(x))
		for i := range x {
			list[i] = x[i]
		}
		return list
	case bool, string:
		return x
	default:
		b, _ := json.Marshal(x) // an integer
		return json.Number(b)
	}
}

// flagName is the name kong gives to a field.
func flagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if 'A' <= r && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
