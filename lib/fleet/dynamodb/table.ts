import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
  UpdateItemCommand,
  type AttributeValue,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import type { KbindError } from '../../model/errors.ts';
import { awsError } from '../aws/errors.ts';
import type { Item } from './item.ts';

/** A write that goes through only if the condition holds. */
export interface Guarded {
  readonly condition: string;
  /** `#name` to attribute. */
  readonly names?: Readonly<Record<string, string>>;
  /** `:value` to value. */
  readonly values?: Readonly<Record<string, AttributeValue>>;
}

const asked = ({ condition, names, values }: Guarded) => ({
  ConditionExpression: condition,
  ...(names === undefined ? {} : { ExpressionAttributeNames: { ...names } }),
  ...(values === undefined ? {} : { ExpressionAttributeValues: { ...values } }),
});

/** The few requests that the registry makes of its table. All reads are consistent. Throws our errors only. */
export class FleetTable {
  readonly #client: DynamoDBClient;
  readonly #table: string;

  constructor(client: DynamoDBClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  async get(id: string): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName: this.#table, Key: { id: { S: id } }, ConsistentRead: true });
    return (await this.#try(() => this.#client.send(command))).Item;
  }

  /** Everything. */
  async scan(): Promise<Item[]> {
    const items: Item[] = [];
    let from: Item | undefined;
    do {
      const start = from === undefined ? {} : { ExclusiveStartKey: from };
      const command = new ScanCommand({ TableName: this.#table, ConsistentRead: true, ...start });
      const page = await this.#try(() => this.#client.send(command));
      items.push(...(page.Items ?? []));
      from = page.LastEvaluatedKey;
    } while (from !== undefined);
    return items;
  }

  /** False when the condition did not hold. */
  put(item: Item, guard: Guarded): Promise<boolean> {
    const command = new PutItemCommand({ TableName: this.#table, Item: item, ...asked(guard) });
    return this.#guarded(() => this.#client.send(command));
  }

  /** False when the condition did not hold. `change` is an update expression. */
  update(id: string, change: string, guard: Guarded): Promise<boolean> {
    const command = new UpdateItemCommand({
      TableName: this.#table,
      Key: { id: { S: id } },
      UpdateExpression: change,
      ...asked(guard),
    });
    return this.#guarded(() => this.#client.send(command));
  }

  /** False when the condition did not hold. */
  delete(id: string, guard: Guarded): Promise<boolean> {
    const command = new DeleteItemCommand({ TableName: this.#table, Key: { id: { S: id } }, ...asked(guard) });
    return this.#guarded(() => this.#client.send(command));
  }

  async #guarded(send: () => Promise<unknown>): Promise<boolean> {
    try {
      await send();
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw this.#converted(error);
    }
  }

  async #try<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      throw this.#converted(error);
    }
  }

  #converted(error: unknown): KbindError {
    return awsError(error, `fleet table ${this.#table}`);
  }
}
