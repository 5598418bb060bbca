package config

import "time"

// Flags are the flags of podd run, with the kubelet's names and descriptions if it has the
// flag. A nil pointer or slice was not set. The tag "field" names the v1beta1 field of a
// flag. All other tags are those of kong, which lists the groups in this order.
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

	// Known contains the kubelet's flags that were set and are not served. Args finds them.
	Known []Known `kong:"-"`
}

// FileFlags name the configuration files and podd's directories.
type FileFlags struct {
	Config    string `placeholder:"FILE" help:"Load the KubeletConfiguration (kubelet.config.k8s.io/v1beta1) from this file. Command-line flags override it."`
	ConfigDir string `placeholder:"DIR" help:"Directory of drop-in files (*.conf) that override the file of --config."`
	RootDir   string `placeholder:"DIR" help:"Directory path for managing podd's files, such as volumes (default /var/lib/podd; in a cluster /var/lib/kubelet). Each podd needs its own."`
	RunDir    string `placeholder:"DIR" help:"Directory of the control socket (default /run/podd)."`
}

// SourceFlags configure the sources of pods.
type SourceFlags struct {
	PodManifestPath       []string       `sep:"none" placeholder:"PATH" help:"Path to the directory containing pod files to run, or the path to a single pod file. Repeatable."`
	ManifestURL           []string       `name:"manifest-url" sep:"none" placeholder:"URL" help:"URL for accessing additional Pod specifications to run. {node} and {machineID} are replaced. Repeatable."`
	ManifestURLHeader     []string       `name:"manifest-url-header" sep:"none" placeholder:"NAME:VALUE" help:"HTTP headers to use when accessing --manifest-url. Other users can see the values in ps; prefer --manifest-url-header-file. Repeatable."`
	ManifestURLHeaderFile string         `name:"manifest-url-header-file" placeholder:"FILE" help:"File with HTTP headers to use when accessing --manifest-url, one \"Name: value\" per line."`
	ManifestURLCA         string         `name:"manifest-url-ca" placeholder:"FILE" help:"CA certificates that verify the servers of --manifest-url, instead of the system's."`
	ManifestURLCert       string         `name:"manifest-url-cert" placeholder:"FILE" help:"Client certificate to use when accessing --manifest-url."`
	ManifestURLKey        string         `name:"manifest-url-key" placeholder:"FILE" help:"Private key of --manifest-url-cert."`
	APIManifestDir        string         `name:"api-manifest-dir" placeholder:"DIR" help:"Directory that the Kubernetes API writes manifests to, for example for kubectl apply. It must have mode 0700 and belong to this podd only. Without it, the API is read-only. Not allowed in a cluster."`
	FileCheckFrequency    *time.Duration `field:"fileCheckFrequency" placeholder:"20s" help:"Duration between checking pod files for new data, in addition to watching them."`
	HTTPCheckFrequency    *time.Duration `name:"http-check-frequency" field:"httpCheckFrequency" placeholder:"20s" help:"Duration between checking manifest URLs for new data."`
	Strict                bool           `help:"Reject manifests with unknown or duplicate fields. By default, such fields only cause warnings."`
}

// NodeFlags describe the node.
type NodeFlags struct {
	HostnameOverride    string   `placeholder:"NAME" help:"Name of the node instead of the hostname. If it differs from the name of the last start, every pod stops and starts again with the new name; see podd help accept."`
	CloudMetadata       string   `placeholder:"CLOUD" help:"Get the node's name, zone, region, instance type and provider ID from the metadata service of openstack, ec2 or gce. Other flags take precedence. Pods start after the service has responded."`
	NodeIP              string   `name:"node-ip" placeholder:"IP[,IP]" help:"IP address (or comma-separated dual-stack IP addresses, the primary first) of the node. If unset, podd detects and follows the node's addresses."`
	NodeLabels          []string `placeholder:"NAME=VALUE" help:"Labels of the node, for nodeSelector and nodeAffinity."`
	NodeStatusMaxImages *int32   `field:"nodeStatusMaxImages" placeholder:"50" help:"The maximum number of images to report in Node.Status.Images. If -1 is specified, no cap will be applied."`
}

// PodFlags configure how pods run.
type PodFlags struct {
	MaxPods              *int32         `field:"maxPods" placeholder:"110" help:"Number of pods that can run on this node."`
	PodMaxPids           *int64         `field:"podPidsLimit" placeholder:"-1" help:"Set the maximum number of processes per pod. If -1, there is no limit."`
	SyncFrequency        *time.Duration `field:"syncFrequency" placeholder:"1m" help:"Maximum interval between full syncs of a pod."`
	ParallelStarts       int            `placeholder:"N" help:"Maximum number of pods that start at the same time. If 0, podd chooses."`
	SeccompDefault       *bool          `field:"seccompDefault" help:"Enable the use of RuntimeDefault as the default seccomp profile for all workloads."`
	AllowedUnsafeSysctls []string       `field:"allowedUnsafeSysctls" placeholder:"NAME" help:"Comma-separated list of unsafe sysctls or unsafe sysctl patterns (ending in *) that pods may set. Use these at your own risk."`
	PodLogsDir           *string        `field:"podLogsDir" placeholder:"DIR" help:"Directory of the logs of pods (default /var/log/pods)."`
	ContainerLogMaxSize  *string        `field:"containerLogMaxSize" placeholder:"10Mi" help:"Set the maximum size of a container log file before it is rotated. If -1, logs are not rotated."`
	ContainerLogMaxFiles *int32         `field:"containerLogMaxFiles" placeholder:"5" help:"Set the maximum number of container log files that can be present for a container. The number must be >= 2."`
	RunOnce              *bool          `name:"runonce" field:"runOnce" help:"Run the pods once, to completion, and exit with their exit code."`
}

// RuntimeFlags configure the container runtime and cgroups.
type RuntimeFlags struct {
	ContainerRuntimeEndpoint *string        `field:"containerRuntimeEndpoint" placeholder:"SOCKET" help:"The endpoint of the container runtime service, such as unix:///run/containerd/containerd.sock. By default, the sockets of containerd and CRI-O are tried."`
	ImageServiceEndpoint     *string        `field:"imageServiceEndpoint" placeholder:"SOCKET" help:"The endpoint of the container image service. If not specified, it is the same as --container-runtime-endpoint."`
	RuntimeRequestTimeout    *time.Duration `field:"runtimeRequestTimeout" placeholder:"2m" help:"Timeout of all runtime requests except long running requests: pull, logs, exec and attach."`
	RuntimeClass             []string       `placeholder:"CLASS=HANDLER" help:"Runtime handler of a RuntimeClass. By default, the handler has the name of the class. Repeatable."`
	CgroupDriver             *string        `field:"cgroupDriver" placeholder:"cgroupfs" help:"Driver that podd uses to manipulate cgroups on the host if the runtime does not report its driver. Possible values: cgroupfs, systemd."`
	CgroupRoot               *string        `field:"cgroupRoot" placeholder:"CGROUP" help:"Optional root cgroup to use for pods."`
}

// ImageFlags configure pulls of images.
type ImageFlags struct {
	SerializeImagePulls           *bool       `field:"serializeImagePulls" help:"Pull images one at a time."`
	MaxParallelImagePulls         *int32      `field:"maxParallelImagePulls" placeholder:"5" help:"The maximum number of image pulls in parallel."`
	RegistryQPS                   *int32      `name:"registry-qps" field:"registryPullQPS" placeholder:"5" help:"If > 0, limit registry pull QPS to this value. If 0, unlimited."`
	RegistryBurst                 *int32      `field:"registryBurst" placeholder:"10" help:"Maximum size of bursty pulls, temporarily allows pulls to burst to this number, while still not exceeding --registry-qps."`
	PullOffline                   PullOffline `enum:"strict,use-present" default:"strict" help:"Behavior of imagePullPolicy Always if no registry responds: strict waits for the registry, use-present starts the image that is present."`
	ImageCredentialProviderConfig string      `placeholder:"PATH" help:"Path to a credential provider plugin config file or a directory of such files."`
	ImageCredentialProviderBinDir string      `placeholder:"DIR" help:"The path to the directory where credential provider plugin binaries are located."`
	PodInfraContainerImage        string      `placeholder:"IMAGE" help:"Sandbox image that will not be pruned by the image garbage collector."`
}

// DNSFlags configure name resolution in pods.
type DNSFlags struct {
	ClusterDNS    []string `name:"cluster-dns" field:"clusterDNS" placeholder:"IP" help:"List of DNS server IP addresses, used by pods with dnsPolicy ClusterFirst. Repeatable."`
	ClusterDomain *string  `field:"clusterDomain" placeholder:"DOMAIN" help:"Domain for this cluster. If set, containers search this domain in addition to the host's search domains."`
	ResolvConf    *string  `field:"resolvConf" placeholder:"FILE" help:"Resolver configuration file used as the basis for the container DNS resolution configuration (default /etc/resolv.conf)."`
}

// APIFlags configure the kubelet API.
type APIFlags struct {
	EnableServer            *bool    `field:"enableServer" help:"Enable the kubelet API (default true)."`
	Address                 *string  `field:"address" placeholder:"IP" help:"The IP address for the kubelet API and the read-only port to serve on. By default, the API only listens on 127.0.0.1 unless clients can authenticate with a certificate, a token or a cluster."`
	Port                    *int32   `field:"port" placeholder:"10250" help:"The port for the kubelet API and the Kubernetes API to serve on (set to 0 to disable)."`
	TLSCertFile             *string  `name:"tls-cert-file" field:"tlsCertFile" placeholder:"FILE" help:"File containing x509 certificate used for serving HTTPS. By default, podd issues its own."`
	TLSPrivateKeyFile       *string  `name:"tls-private-key-file" field:"tlsPrivateKeyFile" placeholder:"FILE" help:"File containing x509 private key matching --tls-cert-file."`
	TLSMinVersion           *string  `name:"tls-min-version" field:"tlsMinVersion" placeholder:"VersionTLS12" help:"Minimum TLS version supported. Possible values: VersionTLS12, VersionTLS13."`
	TLSCipherSuites         []string `name:"tls-cipher-suites" field:"tlsCipherSuites" placeholder:"NAME" help:"Comma-separated list of cipher suites for the server. If omitted, the default Go cipher suites will be used."`
	ClientCAFile            *string  `name:"client-ca-file" field:"authentication.x509.clientCAFile" placeholder:"FILE" help:"If set, any request presenting a client certificate signed by one of the authorities in this file is authenticated with the CommonName of the client certificate."`
	TokenAuthFile           string   `placeholder:"FILE" help:"File with bearer tokens, one token,user,uid,\"group,group\" per line."`
	AnonymousAuth           *bool    `field:"authentication.anonymous.enabled" help:"Enable anonymous requests. Requests that are not rejected by another authentication method have the username system:anonymous."`
	AuthorizationMode       *string  `field:"authorization.mode" placeholder:"MODE" help:"Authorization mode. Webhook uses the SubjectAccessReview API of the cluster, AlwaysAllow allows all authenticated requests."`
	AuthorizationPolicyFile string   `placeholder:"FILE" help:"File with ClusterRoles and ClusterRoleBindings that grant permissions to clients. Only members of system:masters can change pods or impersonate that group."`
	EnableDebuggingHandlers *bool    `field:"enableDebuggingHandlers" help:"Enable endpoints for logs, exec, attach and port-forward (default true)."`
}

// EndpointFlags configure the endpoints other than the kubelet API.
type EndpointFlags struct {
	HealthzPort        *int32  `field:"healthzPort" placeholder:"10248" help:"The port of the localhost healthz endpoint (set to 0 to disable)."`
	HealthzBindAddress *string `field:"healthzBindAddress" placeholder:"127.0.0.1" help:"The IP address for the healthz server to serve on."`
	ReadOnlyPort       *int32  `field:"readOnlyPort" placeholder:"0" help:"The read-only port for /pods, metrics and the status page, without logs, to serve on with no authentication/authorization (set to 0 to disable)."`
	CadvisorPort       int32   `placeholder:"0" help:"The port of cAdvisor's /metrics and of the status page on 127.0.0.1 (set to 0 to disable)."`
}

// LoggingFlags configure the log and the event log.
type LoggingFlags struct {
	LoggingFormat *string `field:"logging.format" placeholder:"text" help:"Sets the log format. Permitted formats: text, json."`
	Verbosity     *uint32 `name:"v" short:"v" field:"logging.verbosity" placeholder:"0" help:"Number for the log level verbosity; 4 and above log debug messages."`
	EventLog      string  `placeholder:"FILE" help:"Append events to this file, one JSON object per line."`
}

// AdoptionFlags configure which pods of others podd takes over.
type AdoptionFlags struct {
	Adopt         *bool    `help:"Stop sandboxes of others, such as a stopped kubelet, that have the name of a desired pod, with their grace period. See podd help down for the way back."`
	AdoptInstance []string `placeholder:"ID" help:"Take over the pods of a podd instance whose root directory is lost and that does not run. Desired pods keep running, others stop with their grace period. The ID is stored in the root directory. Data in the lost directory, such as emptyDir volumes, is not recovered. Repeatable."`
}

// ClusterFlags configure podd as a node of a cluster.
type ClusterFlags struct {
	Kubeconfig                string         `placeholder:"FILE" help:"Path to a kubeconfig file, specifying how to connect to the API server. Without it, podd runs standalone."`
	BootstrapKubeconfig       string         `placeholder:"FILE" help:"Path to a kubeconfig file that is used to request a client certificate from the API server if the file of --kubeconfig has no valid credential. On success, --kubeconfig is written."`
	CertDir                   string         `placeholder:"DIR" help:"The directory of the certificates that the cluster has issued (default pki in the root directory)."`
	RotateCertificates        *bool          `field:"rotateCertificates" help:"Auto rotate the client certificate by requesting new certificates from the API server when the certificate expiration approaches."`
	RotateServerCertificates  *bool          `field:"serverTLSBootstrap" help:"Auto-request and rotate the serving certificate of the kubelet API by requesting new certificates from the API server when the certificate expiration approaches."`
	RegisterNode              *bool          `field:"registerNode" help:"Register the node with the API server (default true)."`
	RegisterWithTaints        []string       `placeholder:"KEY=VALUE:EFFECT" help:"Register the node with the given list of taints. No-op if --register-node is false. Repeatable."`
	ProviderID                *string        `name:"provider-id" field:"providerID" placeholder:"ID" help:"Unique identifier for identifying the node in a machine database, i.e. cloud provider."`
	CloudProvider             string         `placeholder:"external" help:"Set to external for running with an external cloud provider, which sets the addresses of the node."`
	NodeStatusUpdateFrequency *time.Duration `field:"nodeStatusUpdateFrequency" placeholder:"10s" help:"Specifies how often podd computes the node status, and posts it if it has changed."`
	KubeAPIQPS                *int32         `name:"kube-api-qps" field:"kubeAPIQPS" placeholder:"50" help:"QPS to use while talking with the Kubernetes API server. Doesn't cover events and node heartbeats."`
	KubeAPIBurst              *int32         `name:"kube-api-burst" field:"kubeAPIBurst" placeholder:"100" help:"Burst to use while talking with the Kubernetes API server. Doesn't cover events and node heartbeats."`
	KubeAPIContentType        *string        `name:"kube-api-content-type" field:"contentType" placeholder:"TYPE" help:"Content type of requests sent to the API server (default application/vnd.kubernetes.protobuf)."`
}

// UnlistedFlags are only checked, and not shown by --help.
type UnlistedFlags struct {
	FailSwapOn   *bool `hidden:"" field:"failSwapOn"`
	FailCgroupV1 *bool `hidden:"" name:"fail-cgroupv1" field:"failCgroupV1"`
}
