/** Where an API server is and how to be let in. Made from vetted kubeconfigs only; never logged. */
export interface ConnectionTarget {
  /** `https://host[:port][/base]`. Plain http only for loopback servers of a local run. */
  readonly server: string;
  /** PEM; the system's authorities when absent. */
  readonly ca?: string | undefined;
  /** Name to verify the server's certificate against, instead of the host. */
  readonly tlsServerName?: string | undefined;
  /** PEM. */
  readonly clientCertificate?: string | undefined;
  /** PEM. */
  readonly clientKey?: string | undefined;
  readonly token?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** For operators' own kubeconfigs: asked before each request for an Authorization header, because tokens on disk rotate. */
  readonly authorization?: (() => Promise<string | undefined>) | undefined;
  /** Namespace of the current context, if it names one. */
  readonly contextNamespace?: string | undefined;
}
