import { KbindError } from '../../model/errors.ts';

/** What people have to put right; everything else passes. */
const MISCONFIGURED = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'ResourceNotFoundException',
  'ValidationException',
  'InvalidParameterException',
  'InvalidRequestException',
  'DecryptionFailure',
  'InvalidClientTokenId',
  'UnrecognizedClientException',
  'CredentialsProviderError',
]);

/** An error of an AWS service as one of ours: says the code and what was asked of, never the service's text. */
export function awsError(error: unknown, what: string): KbindError {
  if (error instanceof KbindError) return error;
  const code = error instanceof Error ? error.name : 'error';
  const errorClass = MISCONFIGURED.has(code) ? 'misconfigured' : 'unavailable';
  return new KbindError(errorClass, `${what}: ${code}`, {}, error);
}
