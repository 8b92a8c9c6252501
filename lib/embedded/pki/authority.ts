import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** A certificate and its key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const LIFETIME_MS = 30 * 24 * 3600 * 1000;
const CLOCK_SKEW_MS = 3600 * 1000;

/** A certificate authority that lives as long as its cluster. */
export class Authority {
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #certificate: x509.X509Certificate;
  #serial = 1;

  private constructor(keys: webcrypto.CryptoKeyPair, certificate: x509.X509Certificate) {
    this.#keys = keys;
    this.#certificate = certificate;
  }

  static async create(name: string): Promise<Authority> {
    x509.cryptoProvider.set(webcrypto);
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: '01',
      name: subject(name, []),
      ...validity(),
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
      ],
    });
    return new Authority(keys, certificate);
  }

  get certificate(): string {
    return this.#certificate.toString('pem');
  }

  /** A certificate for a server on this machine. */
  server(): Promise<KeyPair> {
    const names: x509.JsonGeneralNames = [
      { type: 'dns', value: 'localhost' },
      { type: 'ip', value: '127.0.0.1' },
      { type: 'ip', value: '::1' },
    ];
    return this.#issue(subject('kube-apiserver', []), x509.ExtendedKeyUsage.serverAuth, [
      new x509.SubjectAlternativeNameExtension(names),
    ]);
  }

  /** A certificate for a user; groups are its organizations, as Kubernetes reads them. */
  client(user: string, groups: readonly string[]): Promise<KeyPair> {
    return this.#issue(subject(user, groups), x509.ExtendedKeyUsage.clientAuth, []);
  }

  async #issue(name: x509.JsonName, usage: string, extensions: x509.Extension[]): Promise<KeyPair> {
    const keys = await generateKeys();
    this.#serial += 1;
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: this.#serial.toString(16).padStart(4, '0'),
      subject: name,
      issuer: this.#certificate.subject,
      ...validity(),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([usage]),
        ...extensions,
      ],
    });
    const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
    return { certificate: certificate.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') };
  }
}

const generateKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

const subject = (name: string, groups: readonly string[]): x509.JsonName => [
  { CN: [name] },
  ...(groups.length > 0 ? [{ O: [...groups] }] : []),
];

const validity = (): { notBefore: Date; notAfter: Date } => ({
  notBefore: new Date(Date.now() - CLOCK_SKEW_MS),
  notAfter: new Date(Date.now() + LIFETIME_MS),
});
