package config

import "time"

// Flags are the flags of podd run. A flag that the kubelet also has uses the kubelet's name and
// description. A nil pointer or slice means that the flag is not set. The tag "field" is the path
// of the v1beta1 field that the flag sets. All other tags are tags of kong. In the help, kong
// prints the groups in the order of the fields.
type Flags struct {
	FileFlags     `group:"Configuration"`
	SourceFlags   `group:"Sources of pods"`
	NodeFlags     `group:"Node"`
	PodFlags      `group:"Pods"`
	RuntimeFlags  `group:"Container runtime"`
	ImageFlags    `group:"Images"`
	DNSFlags      `group:"DNS"`
	APIFlags      `group:"Kubelet API"`
	EndpointFlags `group:"Other endpoints"`
	LoggingFlags  `group:"Logging"`
	AdoptionFlags `group:"Adoption of pods"`
	ClusterFlags  `group:"Cluster"`
	UnlistedFlags

	// Unsupported contains the flags that the user has set and that only the kubelet has.
	// NormalizeArgs returns these flags.
	Unsupported []UnsupportedFlag `kong:"-"`
}

// FileFlags are the paths of the configuration files and of podd's directories.
type FileFlags struct {
	Config             string        `placeholder:"FILE" help:"Load the initial configuration from this file, a KubeletConfiguration (kubelet.config.k8s.io/v1beta1). Command-line flags override configuration from this file."`
	ConfigDir          string        `placeholder:"DIR" help:"Path to a directory of drop-ins (*.conf), which overwrite the configuration from the file of --config."`
	DynamicConfigDir   string        `placeholder:"DIR" help:"Directory for checkpoints of the configuration. If it is set, podd uses a changed configuration on trial, and returns to the last known good configuration if the trial fails. See \"podd help dynamic-configuration\". If unset, podd reads its configuration only when it starts."`
	DynamicConfigTrial time.Duration `default:"10m" placeholder:"10m" help:"Duration for which a new configuration is on trial. Requires --dynamic-config-dir."`
	RootDir            string        `placeholder:"DIR" help:"Directory path for managing podd files (volume mounts, etc.) (default /var/lib/podd; in a cluster /var/lib/kubelet). Two podd instances cannot use the same directory."`
	RunDir             string        `placeholder:"DIR" help:"Directory of the control socket (default /run/podd)."`

	LockFile             string `placeholder:"FILE" help:"The path to a file for podd to use as a lock file. podd waits until no other process has locked the file."`
	ExitOnLockContention bool   `help:"Exit when another process opens or removes the file of --lock-file. The pods keep running."`
}

// SourceFlags configure the sources of pods.
type SourceFlags struct {
	PodManifestPath       []string       `sep:"none" placeholder:"PATH" help:"Path to the directory containing static pod files to run, or the path to a single static pod file. Repeatable."`
	ManifestURL           []string       `name:"manifest-url" sep:"none" placeholder:"URL" help:"URL for accessing additional Pod specifications to run. {node} is replaced by the node name, {machineID} by the machine ID of the host. Repeatable."`
	ManifestURLHeader     []string       `name:"manifest-url-header" sep:"none" placeholder:"NAME:VALUE" help:"Comma-separated list of HTTP headers to use when accessing the URL provided to --manifest-url. Other users can see the values in ps; prefer --manifest-url-header-file. Repeatable."`
	ManifestURLHeaderFile string         `name:"manifest-url-header-file" placeholder:"FILE" help:"File with HTTP headers to use when accessing the URL provided to --manifest-url, one \"Name: value\" per line."`
	ManifestURLCA         string         `name:"manifest-url-ca" placeholder:"FILE" help:"File with the CA certificates that verify the server of --manifest-url, instead of the CA certificates of the system."`
	ManifestURLCert       string         `name:"manifest-url-cert" placeholder:"FILE" help:"File containing the client certificate to use when accessing the URL provided to --manifest-url."`
	ManifestURLKey        string         `name:"manifest-url-key" placeholder:"FILE" help:"File containing the private key matching --manifest-url-cert."`
	APIManifestDir        string         `name:"api-manifest-dir" placeholder:"DIR" help:"Directory to which the Kubernetes API writes manifests, for example for \"kubectl apply\". It must have mode 0700, and only this podd may use it. If unset, the API is read-only. Cannot be used together with --kubeconfig."`
	FileCheckFrequency    *time.Duration `field:"fileCheckFrequency" placeholder:"20s" help:"Duration between checking pod files for new data, in addition to watching them."`
	HTTPCheckFrequency    *time.Duration `name:"http-check-frequency" field:"httpCheckFrequency" placeholder:"20s" help:"Duration between checking manifest URLs for new data."`
	Strict                bool           `help:"Reject manifests with unknown or duplicate fields. By default, these fields only cause warnings."`
}

// NodeFlags describe the node.
type NodeFlags struct {
	HostnameOverride    string   `placeholder:"NAME" help:"If non-empty, podd uses this string as identification of the node instead of the actual hostname. If it differs from the node name of the last start, every pod stops and starts again with the new name; see \"podd help accept\"."`
	CloudMetadata       string   `placeholder:"CLOUD" help:"Read the name, zone, region, instance type and provider ID of the node from the metadata service of the cloud: openstack, ec2 or gce. Other flags take precedence. Pods start only after the service has responded."`
	NodeIP              string   `name:"node-ip" placeholder:"IP[,IP]" help:"IP address (or comma-separated dual-stack IP addresses, the primary first) of the node. If unset, podd detects and follows the node's addresses."`
	NodeLabels          []string `placeholder:"NAME=VALUE" help:"Labels to add to the node, for nodeSelector and nodeAffinity of pods. Labels must be key=value pairs separated by ','."`
	NodeStatusMaxImages *int32   `field:"nodeStatusMaxImages" placeholder:"50" help:"The maximum number of images to report in Node.Status.Images. If -1 is specified, no cap will be applied."`
}

// PodFlags configure how pods run.
type PodFlags struct {
	MaxPods              *int32         `field:"maxPods" placeholder:"110" help:"Number of pods that can run on this node."`
	PodMaxPids           *int64         `field:"podPidsLimit" placeholder:"-1" help:"Set the maximum number of processes per pod. If -1, there is no limit."`
	SyncFrequency        *time.Duration `field:"syncFrequency" placeholder:"1m" help:"Max period between synchronizing running containers and config."`
	ParallelStarts       int            `placeholder:"N" help:"The maximum number of pods that start in parallel. If 0, podd adapts the number to the speed at which pods start."`
	SeccompDefault       *bool          `field:"seccompDefault" help:"Enable the use of RuntimeDefault as the default seccomp profile for all workloads."`
	AllowedUnsafeSysctls []string       `field:"allowedUnsafeSysctls" placeholder:"NAME" help:"Comma-separated list of unsafe sysctls or unsafe sysctl patterns (ending in *) that pods may set. Use these at your own risk."`
	PodLogsDir           *string        `field:"podLogsDir" placeholder:"DIR" help:"Root directory for the log files of pods (default /var/log/pods)."`
	ContainerLogMaxSize  *string        `field:"containerLogMaxSize" placeholder:"10Mi" help:"Set the maximum size (e.g. 10Mi) of a container log file before it is rotated. If -1, logs are not rotated."`
	ContainerLogMaxFiles *int32         `field:"containerLogMaxFiles" placeholder:"5" help:"Set the maximum number of container log files that can be present for a container. The number must be >= 2."`
	RunOnce              *bool          `name:"runonce" field:"runOnce" help:"Run the pods once, to completion, and exit with their exit code."`
}

// RuntimeFlags configure the container runtime and cgroups.
type RuntimeFlags struct {
	ContainerRuntimeEndpoint *string        `field:"containerRuntimeEndpoint" placeholder:"SOCKET" help:"The endpoint of the container runtime service, such as unix:///run/containerd/containerd.sock. By default, the sockets of containerd and CRI-O are tried."`
	ImageServiceEndpoint     *string        `field:"imageServiceEndpoint" placeholder:"SOCKET" help:"The endpoint of the container image service. If not specified, it is the same as --container-runtime-endpoint."`
	RuntimeRequestTimeout    *time.Duration `field:"runtimeRequestTimeout" placeholder:"2m" help:"Timeout of all runtime requests except long running requests: pull, logs, exec and attach."`
	RuntimeClass             []string       `placeholder:"CLASS=HANDLER" help:"Runtime handler for the pods of a RuntimeClass. By default, the handler has the name of the RuntimeClass. Repeatable."`
	CgroupDriver             *string        `field:"cgroupDriver" placeholder:"cgroupfs" help:"Driver that podd uses to manipulate cgroups on the host if the runtime does not report its driver. Possible values: cgroupfs, systemd."`
	CgroupRoot               *string        `field:"cgroupRoot" placeholder:"CGROUP" help:"Optional root cgroup to use for pods."`
	RuntimeCgroups           string         `placeholder:"CGROUP" help:"Optional absolute name of the cgroup in which the container runtime runs. The statistics of the kubelet API then contain its usage."`

	MinimumContainerTTLDuration       *time.Duration `name:"minimum-container-ttl-duration" placeholder:"0s" help:"Minimum age for a finished container before it is garbage collected. Examples: '300ms', '10s' or '2h45m'. The age is counted from the creation of the container."`
	MaximumDeadContainersPerContainer *int32         `placeholder:"1" help:"Maximum number of old instances to retain per container. Each container takes up some disk space. To disable, set to a negative number. podd always retains the newest instance, so 0 has the same effect as 1."`
	MaximumDeadContainers             *int32         `placeholder:"-1" help:"Maximum number of old instances of containers to retain globally. Each container takes up some disk space. To disable, set to a negative number. The newest instance of each container of a pod that has not finished is retained in any case."`
}

// ImageFlags configure pulls of images.
type ImageFlags struct {
	SerializeImagePulls           *bool             `field:"serializeImagePulls" help:"Pull images one at a time."`
	MaxParallelImagePulls         *int32            `field:"maxParallelImagePulls" placeholder:"5" help:"The maximum number of image pulls in parallel."`
	RegistryQPS                   *int32            `name:"registry-qps" field:"registryPullQPS" placeholder:"5" help:"If > 0, limit registry pull QPS to this value. If 0, unlimited."`
	RegistryBurst                 *int32            `field:"registryBurst" placeholder:"10" help:"Maximum size of bursty pulls, temporarily allows pulls to burst to this number, while still not exceeding --registry-qps. Only used if --registry-qps > 0."`
	PullOffline                   OfflinePullPolicy `enum:"strict,use-present" default:"strict" help:"Behavior of imagePullPolicy Always if the registry does not respond: strict retries until the registry responds, use-present starts the container with the image that is on the node."`
	ImageCredentialProviderConfig string            `placeholder:"PATH" help:"Path to a credential provider plugin config file (JSON/YAML/YML) or a directory of such files (merged in lexicographical order; non-recursive search)."`
	ImageCredentialProviderBinDir string            `placeholder:"DIR" help:"The path to the directory where credential provider plugin binaries are located."`
	PodInfraContainerImage        string            `placeholder:"IMAGE" help:"Specified image will not be pruned by the image garbage collector."`
}

// DNSFlags configure name resolution in pods.
type DNSFlags struct {
	ClusterDNS    []string `name:"cluster-dns" field:"clusterDNS" placeholder:"IP" help:"Comma-separated list of DNS server IP addresses, used for containers of pods with dnsPolicy ClusterFirst. Repeatable."`
	ClusterDomain *string  `field:"clusterDomain" placeholder:"DOMAIN" help:"Domain for this cluster. If set, podd configures all containers to search this domain in addition to the host's search domains."`
	ResolvConf    *string  `field:"resolvConf" placeholder:"FILE" help:"Resolver configuration file used as the basis for the container DNS resolution configuration (default /etc/resolv.conf)."`
}

// APIFlags configure the kubelet API.
type APIFlags struct {
	EnableServer            *bool    `field:"enableServer" help:"Enable the kubelet API (default true)."`
	Address                 *string  `field:"address" placeholder:"IP" help:"The IP address for the kubelet API and the read-only port to serve on. By default, the API listens on all interfaces if remote clients can authenticate (by a certificate, a token or the cluster), and otherwise only on 127.0.0.1."`
	Port                    *int32   `field:"port" placeholder:"10250" help:"The port for the kubelet API and the Kubernetes API to serve on (set to 0 to disable)."`
	TLSCertFile             *string  `name:"tls-cert-file" field:"tlsCertFile" placeholder:"FILE" help:"File containing x509 certificate used for serving HTTPS. If unset, podd issues the certificate."`
	TLSPrivateKeyFile       *string  `name:"tls-private-key-file" field:"tlsPrivateKeyFile" placeholder:"FILE" help:"File containing x509 private key matching --tls-cert-file."`
	TLSMinVersion           *string  `name:"tls-min-version" field:"tlsMinVersion" placeholder:"VersionTLS12" help:"Minimum TLS version supported. Possible values: VersionTLS12, VersionTLS13."`
	TLSCipherSuites         []string `name:"tls-cipher-suites" field:"tlsCipherSuites" placeholder:"NAME" help:"Comma-separated list of cipher suites for the server. If omitted, the default Go cipher suites will be used."`
	ClientCAFile            *string  `name:"client-ca-file" field:"authentication.x509.clientCAFile" placeholder:"FILE" help:"If set, any request presenting a client certificate signed by one of the authorities in this file is authenticated with an identity corresponding to the CommonName of the client certificate."`
	TokenAuthFile           string   `placeholder:"FILE" help:"If set, the file that will be used to authenticate clients by bearer token, one token,user,uid,\"group,group\" per line."`
	AnonymousAuth           *bool    `field:"authentication.anonymous.enabled" help:"Enables anonymous requests to the kubelet API. Requests that are not rejected by another authentication method are treated as anonymous requests. Anonymous requests have a username of system:anonymous."`
	AuthorizationMode       *string  `field:"authorization.mode" placeholder:"MODE" help:"Authorization mode for the kubelet API. Valid options are AlwaysAllow or Webhook. Webhook mode uses the SubjectAccessReview API of the cluster to determine authorization. AlwaysAllow mode authorizes all authenticated requests."`
	AuthorizationPolicyFile string   `placeholder:"FILE" help:"File with ClusterRoles and ClusterRoleBindings that grant permissions to clients. Only members of system:masters can change pods or impersonate that group."`
	EnableDebuggingHandlers *bool    `field:"enableDebuggingHandlers" help:"Enables server endpoints for log collection and local running of containers and commands (default true)."`
}

// EndpointFlags configure the endpoints other than the kubelet API.
type EndpointFlags struct {
	HealthzPort        *int32  `field:"healthzPort" placeholder:"10248" help:"The port of the localhost healthz endpoint (set to 0 to disable)."`
	HealthzBindAddress *string `field:"healthzBindAddress" placeholder:"127.0.0.1" help:"The IP address for the healthz server to serve on."`
	ReadOnlyPort       *int32  `field:"readOnlyPort" placeholder:"0" help:"The read-only port to serve on with no authentication/authorization (set to 0 to disable). It serves /pods, metrics and the status page, but no logs."`
	CadvisorPort       int32   `placeholder:"0" help:"The port on 127.0.0.1 to serve cAdvisor's /metrics and API and the status page on (set to 0 to disable)."`
}

// LoggingFlags configure the log and the event log.
type LoggingFlags struct {
	LoggingFormat *string `field:"logging.format" placeholder:"text" help:"Sets the log format. Permitted formats: text, json."`
	Verbosity     *uint32 `name:"v" short:"v" field:"logging.verbosity" placeholder:"0" help:"Number for the log level verbosity. At 4 and above, debug messages are logged."`
	EventLog      string  `placeholder:"FILE" help:"File to which podd appends events, one JSON object per line."`
}

// AdoptionFlags configure which sandboxes podd takes over from a kubelet or another podd instance.
type AdoptionFlags struct {
	Adopt         *bool    `help:"Stop a sandbox that has the name of a desired pod and was created by another program, such as a kubelet that has been stopped. The sandbox stops with its grace period. Also remove the logs and the cgroups of pods that do not exist; see \"podd help migrate\". To go back to the kubelet, see \"podd help down\"."`
	AdoptInstance []string `placeholder:"ID" help:"Take over the pods of a podd instance that does not run and whose root directory is lost. Desired pods continue to run, and all other pods stop with their grace period. The ID is stored in the root directory. Data in the lost directory, such as emptyDir volumes, is not recovered. Repeatable."`
}

// ClusterFlags configure podd as a node of a cluster.
type ClusterFlags struct {
	Kubeconfig                string         `placeholder:"FILE" help:"Path to a kubeconfig file, specifying how to connect to the API server. Providing --kubeconfig enables API server mode, omitting --kubeconfig enables standalone mode."`
	BootstrapKubeconfig       string         `placeholder:"FILE" help:"Path to a kubeconfig file that will be used to get a client certificate. If the file specified by --kubeconfig contains no valid credential, the bootstrap kubeconfig is used to request a client certificate from the API server. On success, a kubeconfig file referencing the certificate and key is written to the path specified by --kubeconfig."`
	CertDir                   string         `placeholder:"DIR" help:"The directory where the certificates issued by the cluster are located (default pki in the root directory)."`
	RotateCertificates        *bool          `field:"rotateCertificates" help:"Auto rotate the client certificate of this node by requesting new certificates from the API server when the certificate expiration approaches."`
	RotateServerCertificates  *bool          `field:"serverTLSBootstrap" help:"Auto-request and rotate the serving certificate of the kubelet API by requesting new certificates from the API server when the certificate expiration approaches."`
	RegisterNode              *bool          `field:"registerNode" help:"Register the node with the API server (default true)."`
	RegisterWithTaints        []string       `placeholder:"KEY=VALUE:EFFECT" help:"Register the node with the given list of taints (comma-separated KEY=VALUE:EFFECT). No-op if --register-node is false. Repeatable."`
	ProviderID                *string        `name:"provider-id" field:"providerID" placeholder:"ID" help:"Unique identifier for identifying the node in a machine database, i.e. cloud provider."`
	CloudProvider             string         `placeholder:"external" help:"The provider for cloud services. Set to 'external' for running with an external cloud provider, which sets the addresses of the node."`
	NodeStatusUpdateFrequency *time.Duration `field:"nodeStatusUpdateFrequency" placeholder:"10s" help:"Specifies how often podd computes the node status. podd posts the status if it has changed."`
	KubeAPIQPS                *int32         `name:"kube-api-qps" field:"kubeAPIQPS" placeholder:"50" help:"QPS to use while talking with the Kubernetes API server. Doesn't cover events and node heartbeats."`
	KubeAPIBurst              *int32         `name:"kube-api-burst" field:"kubeAPIBurst" placeholder:"100" help:"Burst to use while talking with the Kubernetes API server. Doesn't cover events and node heartbeats."`
	KubeAPIContentType        *string        `name:"kube-api-content-type" field:"contentType" placeholder:"TYPE" help:"Content type of requests sent to the API server (default application/vnd.kubernetes.protobuf)."`
}

// UnlistedFlags are flags that --help does not print.
type UnlistedFlags struct {
	FailSwapOn   *bool `hidden:"" field:"failSwapOn"`
	FailCgroupV1 *bool `hidden:"" name:"fail-cgroupv1" field:"failCgroupV1"`

	// ExperimentalAllocatableIgnoreEviction is deprecated in the kubelet.
	ExperimentalAllocatableIgnoreEviction bool `hidden:""`
}
